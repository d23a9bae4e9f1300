"""Gates between two parties over a socket: exact modulo the ring, counted to the byte, uniform to either party."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.protocol.parties import run_parties
from tests.protocol.relu_runs import CLIENT_OTS, SERVER_OTS, Party, assert_uniform

from sphynx.core import ot
from sphynx.errors import InputError
from sphynx.program.cost.cost import gate_cost
from sphynx.protocol.arithmetic import prepare_client, prepare_server
from sphynx.protocol.channel import HEADER_BYTES, Channel, Record
from sphynx.protocol.floor import FloorLayer
from sphynx.protocol.gate import GateLayer
from sphynx.protocol.square import SquareLayer

Words = NDArray[np.uint64]
Layer = GateLayer | FloorLayer | SquareLayer


def run_layers(
    layers: list[Layer], values: list[Words], shares: list[Words], parties: tuple[Party, Party] | None = None
) -> tuple[list[Words], Record]:
    """Run both parties; return what comes out, modulo the ring, and the client's traffic."""
    served, asked = parties or (Party(), Party())
    rng = np.random.default_rng(7)
    rings = [np.uint64(2**layer.k - 1) for layer in layers]
    sizes = [layer.gates * layer.length if isinstance(layer, GateLayer) else layer.count for layer in layers]
    masks = [rng.integers(0, 2**64, size, np.uint64) & ring for size, ring in zip(sizes, rings, strict=True)]

    def server(channel: Channel) -> list[Words]:
        served.listen(channel, "")
        materials = prepare_server(channel, SERVER_OTS, layers)
        given = zip(layers, materials, values, shares, rings, strict=True)
        return [layer.server(channel, own, (x - share) & ring) for layer, own, x, share, ring in given]

    def client(channel: Channel) -> Record:
        asked.listen(channel, "")
        materials = prepare_client(channel, CLIENT_OTS, layers, shares)
        for layer, material, share, mask in zip(layers, materials, shares, masks, strict=True):
            with channel.section("online", layer.name):
                layer.client(channel, material, share, mask)
        return channel.take_record()

    results, record = run_parties(server, client)
    return [(y + mask) & ring for y, mask, ring in zip(results, masks, rings, strict=True)], record


@settings(max_examples=15, deadline=None)
@given(
    k=st.integers(1, 64),
    sizes=st.lists(st.tuples(st.integers(1, 70), st.integers(1, 9)), min_size=1, max_size=3),
    seed=st.integers(0, 1000),
)
@example(k=64, sizes=[(64, 1), (65, 2)], seed=0)
@example(k=36, sizes=[(3, 100)], seed=1)
def test_products_are_exact(k: int, sizes: list[tuple[int, int]], seed: int) -> None:
    layers: list[Layer] = [GateLayer(f"gate {n}", k, *size) for n, size in enumerate(sizes)]
    rng, ring = np.random.default_rng(seed), np.uint64(2**k - 1)
    drawn = [[rng.integers(0, 2**64, g * n + g, np.uint64) & ring for g, n in sizes] for _ in range(2)]
    got, record = run_layers(layers, drawn[0], drawn[1])
    for (gates, length), x, y in zip(sizes, drawn[0], got, strict=True):
        expected = x[: gates * length].reshape(gates, length) * x[gates * length :, None] & ring
        assert y.tolist() == expected.reshape(-1).tolist()
    costs = [gate_cost(*size, k) for size in sizes]
    assert record.total("online").bytes == sum(c.gate_online_bytes + c.gate_messages * HEADER_BYTES for c in costs)
    extensions = 16 * sum(
        ot.message_blocks(4, cost.gate_down_ots, random_choices=True, checked=False)
        + ot.message_blocks(4, cost.gate_ots - cost.gate_down_ots, random_choices=False, checked=True)
        for cost in costs
    )
    corrections = sum(2 * cost.gate_correction_bytes for cost in costs)
    assert record.total("offline").bytes == extensions + corrections + (ot.TWEAK_BYTES + 3 * HEADER_BYTES) * len(sizes)


def test_they_mix_with_squares_and_truncations() -> None:
    """All draw from the same OTs, in one order at both parties."""
    k, rng = 40, np.random.default_rng(3)
    layers: list[Layer] = [
        FloorLayer("floor", 20, k, 7, 100),
        GateLayer("gate", k, 5, 20),
        SquareLayer("square", 12, k, 2, 3, 70),
        GateLayer("other gate", k, 66, 1),
    ]
    values = [
        rng.integers(0, 2**19, 100).astype(np.uint64),
        rng.integers(0, 2**14, 105).astype(np.uint64),
        rng.integers(0, 2**11, 70).astype(np.uint64),
        rng.integers(0, 2**14, 132).astype(np.uint64),
    ]
    shares = [rng.integers(0, 2**k, len(x), np.uint64) for x in values]
    floor, gate, square, other = run_layers(layers, values, shares)[0]
    assert (floor == values[0] >> np.uint64(7)).all()
    assert (gate.reshape(5, 20) == values[1][:100].reshape(5, 20) * values[1][100:, None]).all()
    assert (square == (values[2] >> np.uint64(2)) ** 2 >> np.uint64(3)).all()
    assert (other == values[3][:66] * values[3][66:]).all()


@pytest.mark.parametrize("value", [0, 2**18 - 1])
def test_what_is_received_is_uniform(value: int) -> None:
    """Every x, every gate and every share the same: what is not masked shows at once."""
    layer, parties = GateLayer("gate", 40, 256, 9), (Party(), Party())
    x = np.full(256 * 10, value, np.uint64)
    run_layers([layer], [x], [np.full(256 * 10, 5, np.uint64)], parties)
    for party in parties:
        assert party.received
        for _, message in party.received:
            assert_uniform(message)


@pytest.mark.parametrize(("k", "gates", "length"), [(65, 1, 1), (0, 1, 1), (8, 0, 1), (8, 1, 0)])
def test_what_no_gate_computes_is_refused_by_name(k: int, gates: int, length: int) -> None:
    with pytest.raises(InputError, match="layer 3"):
        GateLayer("layer 3", k, gates, length)
