"""Squares and signed truncations between two parties over a socket: exact, and equal to the integer interpreter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.protocol.parties import run_parties
from tests.protocol.relu_runs import CLIENT_OTS, SERVER_OTS, Party, assert_uniform

from sphynx.errors import InputError
from sphynx.program.interpret import _square
from sphynx.program.ir import Square
from sphynx.protocol.arithmetic import prepare_client, prepare_server
from sphynx.protocol.channel import Channel
from sphynx.protocol.floor import FloorLayer
from sphynx.protocol.square import SquareLayer

Words = NDArray[np.uint64]


def random_words(layers: Sequence[SquareLayer | FloorLayer], seed: int) -> list[Words]:
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 2**64, layer.count, np.uint64) & ring_mask(layer) for layer in layers]


def ring_mask(layer: SquareLayer | FloorLayer) -> np.uint64:
    return np.uint64(2**layer.k - 1)


def run_layers(
    layers: Sequence[SquareLayer | FloorLayer],
    values: list[list[int]],
    *,
    shares: list[Words] | None = None,
    parties: tuple[Party, Party] | None = None,
) -> list[list[int]]:
    """The client's shares are random unless given; `parties` hear the messages."""
    served, asked = parties or (Party(), Party())
    shares, new_masks = shares or random_words(layers, 0), random_words(layers, 1)
    rings = [ring_mask(layer) for layer in layers]

    def server(channel: Channel) -> list[Words]:
        served.listen(channel, "")
        materials = prepare_server(channel, SERVER_OTS, layers)
        results = []
        for layer, material, x, share, ring in zip(layers, materials, values, shares, rings, strict=True):
            own = (np.array(x, np.int64).astype(np.uint64) - share) & ring
            results.append(layer.server(channel, material, own))
        return results

    def client(channel: Channel) -> None:
        asked.listen(channel, "")
        materials = prepare_client(channel, CLIENT_OTS, layers, shares)
        for layer, material, share, mask in zip(layers, materials, shares, new_masks, strict=True):
            layer.client(channel, material, share, mask)

    results, _ = run_parties(server, client)
    return [((y + mask) & ring).tolist() for y, mask, ring in zip(results, new_masks, rings, strict=True)]


@st.composite
def cases(draw: st.DrawFn) -> list[tuple[int, int, int, int, list[int]]]:
    k = draw(st.integers(2, 64))
    layers = []
    for _ in range(draw(st.integers(1, 2))):
        w = draw(st.integers(1, k))
        least = max(0, w - k // 2)
        before = draw(st.integers(least, w - 1))
        if before and w == k:
            w, before = w - 1, max(0, before - 1)
        after = draw(st.integers(0, 2 * (w - before) - 1))
        most = 2 ** (w - 1) - 1
        corners = st.sampled_from([0, most, -most, min(1, most), max(-1, -most)])
        x = draw(st.lists(corners | st.integers(-most, most), min_size=1, max_size=130))
        layers.append((w, k, before, after, x))
    return layers


@settings(max_examples=20)
@given(cases())
@example([(32, 64, 0, 0, [-(2**31) + 1, 2**31 - 1])])
@example([(63, 64, 31, 63, [-(2**62) + 1, 2**62 - 1, 0])])
@example([(24, 40, 8, 12, [-(2**23) + 1, 2**23 - 1, -1, 0, 1, 255, -256] * 20), (17, 40, 1, 1, [3])])
def test_squares_are_exact(case: list[tuple[int, int, int, int, list[int]]]) -> None:
    layers = [SquareLayer(f"square {i}", w, k, b, a, len(x)) for i, (w, k, b, a, x) in enumerate(case)]
    expected = [[(value >> b) ** 2 >> a for value in x] for _, _, b, a, x in case]
    assert run_layers(layers, [x for *_, x in case]) == expected


def test_squares_equal_the_interpreters() -> None:
    x = np.random.default_rng(2).integers(-(2**22), 2**22, 1000)
    layer = SquareLayer("square", 23, 40, 7, 9, x.size)
    assert run_layers([layer], [x.tolist()]) == [_square(Square("square", "x", 7, 9), x).tolist()]


@pytest.mark.parametrize("before", [0, 7])
@pytest.mark.parametrize("value", [0, -1, 2**18 - 1, 1 - 2**18])
def test_what_is_received_is_uniform(value: int, before: int) -> None:
    """Every x and every share the same: what enters the first part shows at once where it is not masked."""
    layer, parties = SquareLayer("square", 19, 40, before, 9, 2048), (Party(), Party())
    run_layers([layer], [[value] * 2048], shares=[np.full(2048, 5, np.uint64)], parties=parties)
    for party in parties:
        assert party.received
        for _, message in party.received:
            assert_uniform(message)


@pytest.mark.parametrize(
    ("w", "k", "before", "after"), [(20, 32, 20, 0), (32, 32, 17, 0), (20, 32, 2, 0), (16, 32, 0, 32), (0, 32, 0, 0)]
)
def test_what_does_not_fit_is_refused_by_name(w: int, k: int, before: int, after: int) -> None:
    with pytest.raises(InputError, match="cell 2/square"):
        SquareLayer("cell 2/square", w, k, before, after, 10)


@st.composite
def floors(draw: st.DrawFn) -> list[tuple[FloorLayer, list[int]]]:
    """A range is -2^(w-1) .. 2^(w-1) - 1: what a truncation leaves reaches its lower end."""
    k = draw(st.integers(3, 64))
    layers = []
    for number in range(draw(st.integers(1, 2))):
        w = draw(st.integers(2, k - 1))
        low, high = -(2 ** (w - 1)), 2 ** (w - 1) - 1
        x = draw(st.lists(st.sampled_from([low, high, -1, 0]) | st.integers(low, high), min_size=1, max_size=130))
        layers.append((FloorLayer(f"floor {number}", w, k, draw(st.integers(1, w - 1)), len(x)), x))
    return layers


@settings(max_examples=20)
@given(floors())
def test_signed_truncation_is_the_floor(cases: list[tuple[FloorLayer, list[int]]]) -> None:
    layers, values = zip(*cases, strict=True)
    expected = [[(v >> layer.f) % 2**layer.k for v in x] for layer, x in cases]
    assert run_layers(layers, list(values)) == expected


@pytest.mark.parametrize(("w", "k", "f"), [(8, 8, 2), (8, 16, 0), (8, 16, 8), (8, 65, 2)])
def test_what_no_truncation_computes_is_refused_by_name(w: int, k: int, f: int) -> None:
    with pytest.raises(InputError, match="layer 3"):
        FloorLayer("layer 3", w, k, f, 5)
