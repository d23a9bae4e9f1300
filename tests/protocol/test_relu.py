"""Both ReLU backends between two parties over a socket: exact over the whole ring, and to the byte."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.protocol.relu_runs import layer_of, run_layers

from sphynx.core import ot
from sphynx.core.gmw import online_messages
from sphynx.errors import InputError
from sphynx.program.backends import BACKENDS, Backend
from sphynx.program.cost.cost import relu_cost
from sphynx.protocol import relu_gc
from sphynx.protocol.channel import HEADER_BYTES, Traffic
from sphynx.protocol.gmw_material import MessageBytes, offline_messages
from sphynx.protocol.relu import ReluLayer
from sphynx.protocol.wires import CHUNK

Words = NDArray[np.uint64]

CHOSEN_CHECK_BYTES, RANDOM_CHECK_BYTES = 4 * 128 + 48, 31 * 128 // 8 + 48  # an extension with its check


def expected(layer: ReluLayer, x: Words) -> list[int]:
    w = layer.shape.w
    low = [int(value) % 2**w for value in x]
    return [value >> layer.shape.f if value < 2 ** (w - 1) else 0 for value in low]


def corners(w: int, k: int) -> list[int]:
    half = 1 << (w - 1)
    values = [0, 1, -1, half - 1, 1 - half, half // 2, -half // 2]
    return [value % 2**k for value in values if -half < value < half]


@st.composite
def cases(draw: st.DrawFn) -> list[tuple[int, int, int, list[int]]]:
    """Layers of one program: one k, the values of each within its w bits."""
    k = draw(st.integers(2, 64))
    layers = []
    for _ in range(draw(st.integers(1, 3))):
        w = draw(st.integers(2, k))
        half = 1 << (w - 1)
        inside = st.sampled_from(corners(w, k)) | st.integers(1 - half, half - 1).map(lambda value: value % 2**k)
        layers.append((w, k, draw(st.integers(0, w - 2)), draw(st.lists(inside, min_size=1, max_size=200))))
    return layers


@pytest.mark.parametrize("backend", BACKENDS)
@settings(max_examples=15)
@given(cases())
@example([(2, 2, 0, [0])])
@example([(64, 64, 62, corners(64, 64)), (64, 64, 0, corners(64, 64) * 9), (2, 64, 0, [0, 1, 2**64 - 1])])
@example([(40, 40, 38, corners(40, 40) * 10)])
def test_relu_is_exact_over_the_whole_ring(backend: Backend, case: list[tuple[int, int, int, list[int]]]) -> None:
    layers = [layer_of(w, k, f, len(x), f"cell {i}/relu") for i, (w, k, f, x) in enumerate(case)]
    xs = [np.array(x, np.uint64) for *_, x in case]
    run = run_layers(backend, layers, xs)
    assert run.results == [expected(layer, x) for layer, x in zip(layers, xs, strict=True)]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("count", [CHUNK, 2 * CHUNK + 77])
def test_every_value_in_several_chunks(backend: Backend, count: int) -> None:
    layer = layer_of(9, 13, 3, count)
    x = (np.arange(count, dtype=np.int64) % 511 - 255).astype(np.uint64) & layer.shape.ring_mask
    assert run_layers(backend, [layer], [x]).results == [expected(layer, x)]


@pytest.mark.parametrize(("w", "k", "f", "count"), [(28, 32, 8, 5120), (34, 40, 7, 1300), (2, 8, 0, 1)])
def test_gmw_bytes_are_those_stated(w: int, k: int, f: int, count: int) -> None:
    layer = layer_of(w, k, f, count)
    run = run_layers("gmw", [layer], [np.zeros(count, np.uint64)])
    sizes = online_messages(layer.shape)
    online = run.server.record.total("online")
    assert online == mirrored(run.client.record.total("online"), online.rounds)
    headers = HEADER_BYTES * sizes.messages // 2
    assert (online.sent_bytes, online.received_bytes) == (sizes.server_bytes + headers, sizes.client_bytes + headers)
    assert online.sent_messages + online.received_messages == sizes.messages
    assert online.rounds == sizes.messages // 2  # by turns: nobody waits for a message without having sent one
    offline = run.server.record.total("offline")
    assert offline.bytes == offline_messages(layer.shape).total + 4 * HEADER_BYTES


@pytest.mark.parametrize(("w", "k", "f", "count"), [(28, 32, 8, 5120), (34, 40, 8, 1300), (2, 8, 0, 1)])
def test_gc_bytes_are_those_stated(w: int, k: int, f: int, count: int) -> None:
    layer = layer_of(w, k, f, count)
    run = run_layers("gc", [layer], [np.zeros(count, np.uint64)])
    sizes = relu_gc.messages(layer.shape)
    online, offline = run.server.record.total("online"), run.server.record.total("offline")
    assert online == mirrored(run.client.record.total("online"), online.rounds)
    assert online.rounds == 1 and relu_cost(count, w, k, f).gc_messages == 2 * online.rounds
    assert online.sent_bytes == sum(sizes.labels) + HEADER_BYTES * len(sizes.labels)
    assert online.received_bytes == sizes.colours + HEADER_BYTES
    assert offline.sent_bytes == sum(sizes.tables) + HEADER_BYTES * len(sizes.tables)
    assert offline.received_bytes == sizes.request + HEADER_BYTES


def mirrored(traffic: Traffic, rounds: int) -> Traffic:
    """The same traffic as the peer counts it; rounds are each party's own."""
    return Traffic(traffic.received_bytes, traffic.sent_bytes, traffic.received_messages, traffic.sent_messages, rounds)


def test_sizes_keep_the_promised_bounds() -> None:
    for w, k, f in [(24, 32, 7), (32, 32, 8), (40, 40, 8)]:
        shape = layer_of(w, k, f, 5120).shape
        gmw = online_messages(shape)
        assert gmw.online_bytes / shape.count <= 36
        assert gmw.messages == (4 if w <= 32 else 6)
        gc = relu_gc.messages(shape)
        ands = (w - 1) + (w - 1 - f) + (k - 1)
        assert gc.online_bytes <= 1.02 * shape.count * (16 * w + k / 8)
        assert gc.offline_bytes <= 1.02 * shape.count * (32 * ands + 4 * (w + k))


@pytest.mark.parametrize(("w", "k", "f"), [(24, 32, 8), (34, 40, 4), (2, 8, 0), (64, 64, 16)])
def test_cost_model_predicts_the_payload(w: int, k: int, f: int) -> None:
    shape = layer_of(w, k, f, 640).shape
    predicted, gmw, gc = relu_cost(640, w, k, f), online_messages(shape), relu_gc.messages(shape)
    assert gmw.online_bytes == predicted.gmw_online_bytes
    assert gmw.messages == predicted.gmw_messages
    assert gc.online_bytes == predicted.gc_online_bytes
    assert sum(gc.tables) - ot.TWEAK_BYTES == predicted.gc_table_bytes


def test_gmw_sizes_follow_the_documented_formulas() -> None:
    """docs/relu.md, for every w and f; the tree's nodes are counted by the tree (core/tests/test_carry_tree.cpp)."""
    k, n = 64, 640
    for w, f in [(width, shift) for width in range(2, 65) for shift in range(width - 1)]:
        digits = [
            part // count + (i < part % count)
            for part in (f, w - 1 - f)
            if (count := -(-part // 4))
            for i in range(count)
        ]
        codes = sum(2**width - 1 for width in digits) + 1
        corrections = sum(2**width - 1 for width in digits if width > 1)
        shape = layer_of(w, k, f, n).shape
        tree = shape.digits.tree
        planes, threes = sum(shape.digits.opened_rows), tree.three_count
        nodes = tree.pair_count + 2 * threes
        ring, wrap = k - 1, max(0, k - 1 - w + f)
        converted, products = (3, 3 * ring) if f else (1, ring)
        converted, products = converted + 2 * (wrap > 0), products + 2 * wrap
        assert online_messages(shape).online_bytes == (codes + 2 * planes + 6) * n // 8 + 2 * k * n // 8
        of_nodes = 31 * (nodes + 1) * n // 8
        assert offline_messages(shape) == MessageBytes(
            request=4 * w * n + CHOSEN_CHECK_BYTES + of_nodes + RANDOM_CHECK_BYTES,
            answer=2 * ot.TWEAK_BYTES + of_nodes + (corrections + 3 * threes) * n // 8,
            conversion=4 * converted * n + CHOSEN_CHECK_BYTES + (5 * threes + k) * n // 8,
            corrections=ot.TWEAK_BYTES + (2 * threes + products) * n // 8,
        )
        levels = 0
        while 3**levels < len(digits):
            levels += 1
        assert tree.level_count == levels
        assert online_messages(shape).messages == 2 * ((levels + 1) // 2) + 2


def test_padding_to_whole_words_wastes_little() -> None:
    even, odd = (online_messages(layer_of(28, 32, 8, count).shape) for count in (5120, 5121))
    assert odd.online_bytes < 1.02 * 5121 / 5120 * even.online_bytes


def test_a_truncation_that_leaves_nothing_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="cell 3/relu"):
        layer_of(20, 32, 19, 10, "cell 3/relu")


@pytest.mark.parametrize(
    ("backend", "pattern"), [("gmw", "s" * 4 + "rs" * 4 + "r" * 4), ("gc", "s" * 4 + "r" * 4)], ids=["gmw", "gc"]
)
def test_the_client_asks_for_all_layers_before_it_waits(backend: Backend, pattern: str) -> None:
    """Rounds do not grow with layers: sent and received messages of the client, in their order."""
    layers = [layer_of(6, 8, 1, 70, f"cell {i}/relu") for i in range(4)]
    run = run_layers(backend, layers, [np.zeros(70, np.uint64)] * 4)
    assert run.client.order[: len(pattern)] == pattern
