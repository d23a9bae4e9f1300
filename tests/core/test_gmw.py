"""The GMW ReLU over the whole ring with dealt randomness: result, message sizes, one-time-padded openings."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sphynx.core import Prg, _native, gmw
from sphynx.core.bits import slice_bits

Words = np.ndarray


def random_words(prg: Prg, *shape: int) -> Words:
    words = np.empty(shape, np.uint64)
    prg.fill_words(words)
    return words


def bits_of(plane: Words, count: int) -> Words:
    return np.unpackbits(plane.view(np.uint8), bitorder="little")[:count].astype(np.uint64)


def deal(shape: gmw.ReluShape, x_c: Words) -> tuple[gmw.Material, gmw.Material, Words, Words]:
    """A trusted dealer: (server's material, client's, leaf masks, alpha)."""
    prg = Prg()
    digits, words, count = shape.digits, shape.words, shape.count
    inner, pairs = digits.tree.inner_count, digits.correction_rows // 2
    leaf_masks = random_words(prg, digits.term_rows, words)
    m1, m0, m10, alone = np.split(leaf_masks, [pairs, 2 * pairs, 3 * pairs])
    c1, c0, c10, c = np.split(digits.terms(slice_bits(x_c, shape.w)), [pairs, 2 * pairs, 3 * pairs])
    of_leaves = np.concatenate([(m1 & c1) ^ (m10 & c0) ^ (m0 & c10), (m1 & c0) ^ (m0 & c1), alone & c])
    leaf_share = random_words(prg, *of_leaves.shape)
    nodes = [random_words(prg, 5, inner, words) for _ in range(2)]
    a, b, c = (nodes[0] ^ nodes[1])[:3]
    nodes[1][3] = nodes[0][3] ^ (a & b)
    nodes[1][4] = nodes[0][4] ^ (a & c)
    bits = [random_words(prg, 3, words) for _ in range(2)]
    delta, b1, b2 = (bits_of(plane, count) for plane in bits[0] ^ bits[1])
    alpha = random_words(prg, count) & shape.ring_mask
    own = (x_c & np.uint64(2**shape.w - 1)) >> np.uint64(shape.f)
    secrets = np.stack([delta, b1, b2, delta * b1, delta * b2, delta * (alpha + own)])
    share = random_words(prg, 6, count)
    server = gmw.Material(leaf_share, nodes[0], bits[0], share & shape.ring_mask)
    client = gmw.Material(
        leaf_share ^ of_leaves,
        nodes[1],
        bits[1],
        (secrets - share) & shape.ring_mask,
    )
    return server, client, leaf_masks, alpha


def run(shape: gmw.ReluShape, x_s: Words, x_c: Words, new_mask: Words) -> tuple[Words, int, int]:
    """(server's share, bits on the wire, messages by turns)."""
    server_material, client_material, leaf_masks, alpha = deal(shape, x_c)
    server = gmw.ReluServer(shape, server_material, leaf_masks, alpha, x_s)
    client = gmw.ReluClient(shape, client_material, x_c)
    leaves, z = server.first_message()
    client.hear(leaves, z)
    sent = leaves.nbytes + z.nbytes
    for level in range(len(gmw.online_messages(server.shape).openings)):
        down, up = server.open(level), client.open(level)
        server.close(level, up)
        client.close(level, down)
        sent += down.nbytes + up.nbytes
    reshare = client.finish(new_mask)
    return server.finish(reshare), 8 * (sent + reshare.nbytes), gmw.online_messages(shape).messages


def corner_values(width: int) -> st.SearchStrategy[int]:
    half = 1 << (width - 1)
    corners = [0, 1, 2, 2 * half - 1, 2 * half - 2, half, half - 1, half + 1]
    return st.sampled_from(corners) | st.integers(0, 2 * half - 1)


@st.composite
def cases(draw: st.DrawFn) -> tuple[int, int, int, list[tuple[int, int, int]]]:
    k = draw(st.integers(2, 64))
    w = draw(st.integers(2, k))
    f = draw(st.integers(0, w - 2))
    rows = st.tuples(corner_values(w), corner_values(w), corner_values(k))
    return w, k, f, draw(st.lists(rows, min_size=1, max_size=130))


@settings(max_examples=150, deadline=None)
@given(cases())
def test_relu_over_the_whole_ring(case: tuple[int, int, int, list[tuple[int, int, int]]]) -> None:
    w, k, f, rows = case
    x = [value for value, _, _ in rows]
    x_c = np.array([value for _, value, _ in rows], np.uint64)
    new_mask = np.array([value for _, _, value in rows], np.uint64)
    x_s = np.array([(a - int(b)) % 2**w for a, b in zip(x, x_c, strict=True)], np.uint64)
    y_s, _, _ = run(gmw.ReluShape(w, k, f, len(rows)), x_s, x_c, new_mask)
    expected = [a >> f if a < 2 ** (w - 1) else 0 for a in x]
    assert [(int(a) + int(b)) % 2**k for a, b in zip(y_s, new_mask, strict=True)] == expected


def test_exhaustively_at_five_bits() -> None:
    x_s, x_c = (grid.reshape(-1).astype(np.uint64) for grid in np.meshgrid(np.arange(32), np.arange(32)))
    x = (x_s + x_c) % np.uint64(32)
    for f in range(4):
        shape = gmw.ReluShape(5, 9, f, 1024)
        mask = np.arange(1024, dtype=np.uint64) % np.uint64(512)
        y_s, _, _ = run(shape, x_s, x_c, mask)
        assert ((y_s + mask) % np.uint64(512) == np.where(x < 16, x >> np.uint64(f), np.uint64(0))).all()


@pytest.mark.parametrize(("w", "k", "byte_count"), [(33, 33, 25), (41, 41, 32), (33, 64, 33), (61, 61, 48)])
def test_bytes_and_messages_as_designed(w: int, k: int, byte_count: int) -> None:
    """Truncated by 8 bits, 4 digits: a subtree."""
    count = 640
    zeros = np.zeros(count, np.uint64)
    _, bits, messages = run(gmw.ReluShape(w, k, 8, count), zeros, zeros, zeros)
    digits = (w - 1) // 2
    depth = math.ceil(math.log2(digits))
    assert bits == count * (3 * digits + 1 + 6 * (digits - 1) - 2 * depth + 2 * (k + 3))
    assert round(bits / count / 8) == byte_count
    assert messages == 3 + depth - (depth % 2 == 0)  # an opening each, the leaves and the resharing, by turns


@pytest.mark.parametrize(("widths", "messages"), [((10, 32), 6), ((34, 64), 8)])
def test_messages_of_a_layer(widths: tuple[int, int], messages: int) -> None:
    least, most = widths
    for w in range(least, most + 1):
        for f in range(w - 1):
            assert gmw.online_messages(gmw.ReluShape(w, 64, f, 1)).messages == messages


def test_openings_look_uniform_whatever_the_input() -> None:
    """The same input many times: every opened bit is one about half the time (5 standard deviations)."""
    shape = gmw.ReluShape(8, 8, 2, 64 * 500)
    x_s, x_c = np.full(shape.count, 3, np.uint64), np.full(shape.count, 200, np.uint64)
    server_material, client_material, leaf_masks, alpha = deal(shape, x_c)
    server = gmw.ReluServer(shape, server_material, leaf_masks, alpha, x_s)
    client = gmw.ReluClient(shape, client_material, x_c)
    leaves, z = server.first_message()
    client.hear(leaves, z)
    seen = [leaves]
    for level in range(len(gmw.online_messages(server.shape).openings)):
        down, up = server.open(level), client.open(level)
        server.close(level, up)
        client.close(level, down)
        seen += [down, up]
    ones = np.unpackbits(np.concatenate(seen).view(np.uint8), axis=1).sum(axis=1)
    assert (abs(ones - shape.count / 2) < 5 * math.sqrt(shape.count) / 2).all()


def test_wrong_buffers_raise() -> None:
    tree = _native.CarryTree(7, 2)
    good = np.zeros((tree.node_count, 3), np.uint64)
    masks = np.zeros((5, tree.inner_count, 3), np.uint64)
    out = np.zeros((tree.opened_rows(0), 3), np.uint64)
    tree.open_level(0, 3, good, good, masks, out)
    with pytest.raises(ValueError, match="level"):
        tree.open_level(9, 3, good, good, masks, out)
    with pytest.raises(ValueError, match="masks"):
        tree.open_level(0, 3, good, good, masks[:4], out)
    with pytest.raises(ValueError, match="overflow"):
        tree.open_level(0, 2**63, good, good, masks, out)
    with pytest.raises(ValueError, match="theirs"):
        tree.close_level(0, 3, True, out, out[1:], masks, good, good.copy())
    with pytest.raises(ValueError, match="carry tree"):
        _native.CarryTree(7, 7)
    with pytest.raises(ValueError, match="GMW ReLU"):
        gmw.ReluShape(8, 7, 0, 1)
    zeros = np.zeros(10, np.uint64)
    with pytest.raises(ValueError, match="shares"):
        _native.multiplex(np.zeros((3, 1), np.uint64), zeros, zeros, zeros, 32, 24, True, zeros.copy())
