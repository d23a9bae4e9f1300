"""The GMW ReLU over the whole ring with dealt randomness: result, message sizes, one-time-padded openings."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sphynx.core import Prg, _native, gmw
from tests.core.gmw_exchange import exchange, received

Words = np.ndarray


def random_words(prg: Prg, *shape: int) -> Words:
    words = np.empty(shape, np.uint64)
    prg.fill_words(words)
    return words


def bits_of(plane: Words, count: int) -> Words:
    return np.unpackbits(plane.view(np.uint8), bitorder="little")[:count].astype(np.uint64)


def deal_nodes(prg: Prg, rows: int, products: dict[int, tuple[int, int]], *shape: int) -> list[Words]:
    """Both parties' rows, random but for the products of two rows that come before them."""
    server, client = (random_words(prg, rows, *shape) for _ in range(2))
    for row, (x, y) in products.items():
        client[row] = server[row] ^ ((server ^ client)[x] & (server ^ client)[y])
    return [server, client]


PAIR_PRODUCTS = {3: (0, 1), 4: (0, 2)}
THREE_PRODUCTS = {5: (0, 1), 6: (0, 2), 7: (0, 3), 8: (0, 4), 9: (2, 3), 10: (2, 4), 11: (0, 9), 12: (0, 10)}


def deal(shape: gmw.ReluShape, x_c: Words) -> tuple[gmw.Material, gmw.Material, Words, Words]:
    """A trusted dealer: (server's material, client's, leaf masks, alpha). What leaves need is from random OTs."""
    prg = Prg()
    digits, words, count = shape.digits, shape.words, shape.count
    own = digits.bits(x_c)
    zeros, ones = (random_words(prg, digits.bit_rows * 64 * words, 2) for _ in range(2))
    pads = np.where(np.unpackbits(own.view(np.uint8), bitorder="little")[:, None] == 1, ones, zeros)
    leaf_masks, server_products, corrections = digits.masks(zeros, ones)
    products = [server_products, digits.products(pads, own, corrections)]
    pairs = deal_nodes(prg, 5, PAIR_PRODUCTS, digits.tree.pair_count, words)
    threes = deal_nodes(prg, 13, THREE_PRODUCTS, digits.tree.three_count, words)
    bits = [random_words(prg, 3, words) for _ in range(2)]
    delta, b1, b2 = (bits_of(plane, count) for plane in bits[0] ^ bits[1])
    alpha = random_words(prg, count) & shape.ring_mask
    own = (x_c & np.uint64(2**shape.w - 1)) >> np.uint64(shape.f)
    secrets = np.stack([delta, b1, b2, delta * b1, delta * b2, delta * (alpha + own)])
    share = random_words(prg, 6, count)
    arithmetic = [share & shape.ring_mask, (secrets - share) & shape.ring_mask]
    server, client = (gmw.Material(products[at], pairs[at], threes[at], bits[at], arithmetic[at]) for at in range(2))
    return server, client, leaf_masks, alpha


def run(shape: gmw.ReluShape, x_s: Words, x_c: Words, new_mask: Words) -> tuple[Words, list[bytes]]:
    """(server's share, the messages)."""
    server_material, client_material, leaf_masks, alpha = deal(shape, x_c)
    server = shape.gadget.server(x_s, **vars(server_material), leaf_masks=leaf_masks, alpha=alpha)
    client = shape.gadget.client(x_c, **vars(client_material), new_mask=new_mask)
    return exchange(server, client, shape.count)


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
    y_s, _ = run(gmw.ReluShape(w, k, f, len(rows)), x_s, x_c, new_mask)
    expected = [a >> f if a < 2 ** (w - 1) else 0 for a in x]
    assert [(int(a) + int(b)) % 2**k for a, b in zip(y_s, new_mask, strict=True)] == expected


def test_exhaustively_at_five_bits() -> None:
    x_s, x_c = (grid.reshape(-1).astype(np.uint64) for grid in np.meshgrid(np.arange(32), np.arange(32)))
    x = (x_s + x_c) % np.uint64(32)
    for f in range(4):
        shape = gmw.ReluShape(5, 9, f, 1024)
        mask = np.arange(1024, dtype=np.uint64) % np.uint64(512)
        y_s, _ = run(shape, x_s, x_c, mask)
        assert ((y_s + mask) % np.uint64(512) == np.where(x < 16, x >> np.uint64(f), np.uint64(0))).all()


@pytest.mark.parametrize(
    ("w", "k", "planes"),
    [
        (33, 33, 8 * 15 + 1 + 2 * (4 + 5 + 3 + 4 + 2)),  # (0 1 2) (3 4 5) (6 7); these; (0 1), the carry into bit 8
        (37, 37, 9 * 15 + 1 + 2 * (4 + 5 + 5 + 4 + 2)),
        (17, 64, 4 * 15 + 1 + 2 * (2 + 3 + 2)),  # (0 1), which is both, and (2 3); these
    ],
)
def test_bytes_and_messages_as_designed(w: int, k: int, planes: int) -> None:
    """Truncated by 8 bits, 2 of the digits."""
    count = 640
    zeros = np.zeros(count, np.uint64)
    _, messages = run(gmw.ReluShape(w, k, 8, count), zeros, zeros, zeros)
    assert 8 * sum(map(len, messages)) == count * (planes + 2 * (k + 3))
    assert len(messages) == 4


@pytest.mark.parametrize(("widths", "messages"), [((6, 34), 4), ((38, 64), 6)])
def test_messages_of_a_layer(widths: tuple[int, int], messages: int) -> None:
    least, most = widths
    for w in range(least, most + 1):
        for f in range(w - 1):
            assert gmw.online_messages(gmw.ReluShape(w, 64, f, 1)).messages == messages


def test_openings_look_uniform_whatever_the_input() -> None:
    """The same input many times: every opened bit is one about half the time (5 standard deviations)."""
    shape = gmw.ReluShape(8, 8, 2, 64 * 500)
    x_s, x_c = np.full(shape.count, 3, np.uint64), np.full(shape.count, 200, np.uint64)
    _, (first, *others, last) = run(shape, x_s, x_c, x_c)
    packed_bytes = shape.count * shape.k // 8  # z and the resharing, which are not planes
    planes = np.frombuffer(first[:-packed_bytes] + b"".join(others) + last[:-packed_bytes], np.uint8)
    ones = np.unpackbits(planes.reshape(-1, shape.count // 8), axis=1).sum(axis=1)
    sizes = gmw.online_messages(shape)
    assert 8 * len(ones) * shape.words == sizes.leaves + 2 * sum(sizes.openings)
    assert (abs(ones - shape.count / 2) < 5 * math.sqrt(shape.count) / 2).all()


def parties() -> tuple[gmw.ReluShape, _native.GmwServer, _native.GmwClient]:
    shape = gmw.ReluShape(12, 16, 4, 100)
    x = np.arange(100, dtype=np.uint64)
    server, client, leaf_masks, alpha = deal(shape, x)
    made = shape.gadget.server(x, **vars(server), leaf_masks=leaf_masks, alpha=alpha)
    return shape, made, shape.gadget.client(x, **vars(client), new_mask=x)


def test_a_party_serves_once_and_in_order() -> None:
    shape, server, client = parties()
    y = np.empty(shape.count, np.uint64)

    def of(party: _native.GmwServer | _native.GmwClient) -> Words:
        return np.zeros(party.received_bytes, np.uint8)

    for call in (lambda: server.answer(of(server)), lambda: server.finish(of(server), y)):
        with pytest.raises(ValueError):
            call()
    server.first()
    for call in (server.first, lambda: server.finish(of(server), y)):
        with pytest.raises(ValueError):
            call()
    while not server.is_last:
        server.answer(of(server))
    with pytest.raises(ValueError, match="no answer"):
        server.answer(of(server))
    server.finish(of(server), y)
    with pytest.raises(ValueError, match="last message"):
        server.finish(of(server), y)
    while not client.is_over:
        client.answer(of(client))
    with pytest.raises(ValueError, match="no answer"):
        client.answer(of(client))


def test_lengths_are_checked_before_a_message_is_read() -> None:
    shape, server, client = parties()
    first = server.first()
    for wrong in (first[:-1], first + b"\0", b""):
        with pytest.raises(ValueError, match="received must have"):
            client.answer(received(wrong))
    with pytest.raises(ValueError, match="aligned"):
        client.answer(received(b"\0" + first)[1:])
    client.answer(received(first))
    assert server.received_bytes == sum(gmw.online_messages(shape).openings[:2])


def test_wrong_shapes_raise() -> None:
    with pytest.raises(ValueError, match="carry tree"):
        _native.CarryTree(7, 7, 2)
    with pytest.raises(ValueError, match="GMW ReLU"):
        gmw.ReluShape(8, 7, 0, 1)
    for is_relu, w, k, f in ((True, 8, 7, 0), (True, 8, 8, 7), (False, 8, 8, 0), (False, 8, 8, 8), (True, 1, 8, 0)):
        with pytest.raises(ValueError, match="GMW gadget"):
            _native.GmwGadget(is_relu, w, k, f, 1)
