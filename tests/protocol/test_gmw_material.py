"""Preprocessing by OT, then the ReLU: both halves of the GMW backend together, over the whole ring."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.gmw_exchange import exchange
from tests.protocol.relu_runs import CLIENT_OTS, SERVER_OTS, connected_ots

from sphynx.core import gmw, ot
from sphynx.errors import SphynxError
from sphynx.protocol.gmw_material import GmwOfflineClient, GmwOfflineServer, MessageBytes
from sphynx.protocol.transport import Buffer
from sphynx.protocol.truncate import Truncation, TruncationRequest, answer_truncation

CHECK_BYTES = 2 * (512 + 48) + 496 + 48  # two extensions with chosen bits, one with random ones


def joined(parts: list[Buffer]) -> bytearray:
    """As the channel delivers the parts of a message."""
    return bytearray(b"".join(parts))


@st.composite
def cases(draw: st.DrawFn) -> tuple[int, int, int, list[tuple[int, int, int]]]:
    k = draw(st.integers(2, 64))
    w = draw(st.integers(2, k))
    f = draw(st.integers(0, w - 2))
    half = 1 << (w - 1)
    corners = st.sampled_from([0, 1, 2 * half - 1, half, half - 1]) | st.integers(0, 2 * half - 1)
    rows = st.tuples(corners, corners, st.integers(0, 2**k - 1))
    return w, k, f, draw(st.lists(rows, min_size=1, max_size=130))


@settings(max_examples=25, deadline=None)
@given(cases())
def test_relu_on_material_from_ot(case: tuple[int, int, int, list[tuple[int, int, int]]]) -> None:
    w, k, f, rows = case
    shape = gmw.ReluShape(w, k, f, len(rows))
    x = [row[0] for row in rows]
    x_c = np.array([row[1] for row in rows], np.uint64)
    new_mask = np.array([row[2] for row in rows], np.uint64)
    x_s = np.array([(a - int(b)) % 2**w for a, b in zip(x, x_c, strict=True)], np.uint64)

    client = GmwOfflineClient(shape, CLIENT_OTS, x_c)
    server = GmwOfflineServer(shape, SERVER_OTS)
    answer = server.answer(joined(client.request()))
    corrections, material = server.finish(joined(client.conversion(joined(answer))))
    client_material = client.finish(joined(corrections))

    relu_server = shape.gadget.server(
        x_s, **vars(material.shares), leaf_masks=material.leaf_masks, alpha=material.alpha
    )
    y_s, _ = exchange(relu_server, shape.gadget.client(x_c, **vars(client_material), new_mask=new_mask), shape.count)
    expected = [a >> f if a < 2 ** (w - 1) else 0 for a in x]
    assert [(int(a) + int(b)) % 2**k for a, b in zip(y_s, new_mask, strict=True)] == expected


def test_traffic_per_relu() -> None:
    """56 OTs and 0.26 KB per ReLU at w = k = 33, f = 8 with SoftSpoken-4: 8 digits of four bits and the top bit, three
    nodes of three, two of two, delta. Of the products 32 bits are wanted, of those for the wrap 7."""
    shape = gmw.ReluShape(33, 33, 8, 1280)
    x_c = np.arange(1280, dtype=np.uint64)
    client = GmwOfflineClient(shape, CLIENT_OTS, x_c)
    server = GmwOfflineServer(shape, SERVER_OTS)
    request = joined(client.request())
    answer = joined(server.answer(request))
    conversion = joined(client.conversion(answer))
    corrections = joined(server.finish(conversion)[0])
    assert client.sizes == server.sizes == MessageBytes(len(request), len(answer), len(conversion), len(corrections))
    sent = sum(map(len, (request, answer, conversion, corrections))) - 3 * ot.TWEAK_BYTES - CHECK_BYTES
    nodes, converted = 2 * (3 * 2 + 2 + 1) * 3.875 + 2 * 3 * 5 / 8, 5 * 4 + (3 * 32 + 2 * 7) / 8
    assert sent / shape.count == 33 * 4 + 8 * 15 / 8 + nodes + converted + 33 / 8


@pytest.mark.parametrize(("w", "ots", "product_bits"), [(24, 3, 31 + 2 * 7), (31, 1, 31), (32, 1, 31)])
def test_a_comparison_has_no_carry_to_convert(w: int, ots: int, product_bits: int) -> None:
    """Delta is made additive where nothing is cut off, and what hides the wrap where 2^w is not 0."""
    conversion = gmw.ReluShape(w, 32, 0, 64).conversion
    assert (conversion.ots, 8 * conversion.correction_bytes) == (64 * ots, 64 * product_bits)


def test_wrong_lengths_raise() -> None:
    shape = gmw.ReluShape(8, 8, 2, 100)
    server_ots, client_ots = connected_ots()  # of its own: they end out of step
    client = GmwOfflineClient(shape, client_ots, np.zeros(100, np.uint64))
    server = GmwOfflineServer(shape, server_ots)
    request = joined(client.request())
    for damaged in (b"", request[:-1], request + b"\0"):
        for take in (server.answer, client.conversion, client.finish):
            with pytest.raises(SphynxError, match="bytes where"):
                take(damaged)


def assert_independent(*planes: np.ndarray) -> None:
    """Every row is balanced, and every two are equal in half of their bits: 7 standard deviations."""
    count = 64 * planes[0].shape[-1]
    rows = np.concatenate([part.reshape(-1, count // 64) for part in planes])
    signs = np.vstack([np.ones(count), 1.0 - 2.0 * np.unpackbits(rows.view(np.uint8), axis=1)])
    agreement = signs @ signs.T
    np.fill_diagonal(agreement, 0)
    assert abs(agreement).max() < 7 * count**0.5


def test_masks_of_a_relu_know_nothing_of_each_other() -> None:
    """The client's bits are all alike. Two masks that were one would show it the server's bits, and no result."""
    shape = gmw.ReluShape(20, 20, 7, 1 << 15)
    assert shape.digits.tree.pair_count and shape.digits.tree.three_count
    client = GmwOfflineClient(shape, CLIENT_OTS, np.full(shape.count, 0x55555, np.uint64))
    server = GmwOfflineServer(shape, SERVER_OTS)
    answer = server.answer(joined(client.request()))
    corrections, made = server.finish(joined(client.conversion(joined(answer))))
    own, other = made.shares, client.finish(joined(corrections))
    masks = [planes for party in (own, other) for planes in (party.pair_masks[:3], party.three_masks[:5], party.bits)]
    assert_independent(made.leaf_masks, *masks)


def test_masks_of_a_truncation_know_nothing_of_each_other() -> None:
    plan = Truncation(12, 16, 7, 1 << 15)
    request = TruncationRequest(plan, CLIENT_OTS, np.full(plan.count, 0x55, np.uint64))
    answer, own = answer_truncation(plan, SERVER_OTS, joined(request.message))
    other = request.finish(joined(answer))
    assert_independent(own["leaf_masks"], own["pair_masks"][:3], own["bits"], other["pair_masks"][:3], other["bits"])
