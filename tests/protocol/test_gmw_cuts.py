"""Layers of GMW ReLUs in several batches: the order of messages, and the material put together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.protocol.relu_runs import layer_of, run_layers
from tests.protocol.test_relu import expected

from sphynx.core.ring import ring_dtype
from sphynx.protocol import gmw_cuts
from sphynx.protocol.channel import HEADER_BYTES
from sphynx.protocol.gmw_cuts import CUT, WINDOW_BYTES, Materials, Turn, as_words, cuts_of, turns
from sphynx.protocol.gmw_material import offline_messages

SEVERAL = 2 * CUT + 77


@given(st.lists(st.integers(1, WINDOW_BYTES + 1), max_size=40))
def test_every_batch_is_asked_for_and_then_converted_within_the_window(request_bytes: list[int]) -> None:
    asked, converted, open_bytes = 0, 0, 0
    for turn in turns(request_bytes):
        if turn.converts:
            assert turn.batch == converted < asked
            open_bytes -= request_bytes[converted]
            converted += 1
        else:
            assert turn.batch == asked
            open_bytes += request_bytes[asked]
            asked += 1
            assert open_bytes <= WINDOW_BYTES or asked == converted + 1
    assert asked == converted == len(request_bytes)


def test_what_fits_the_window_is_asked_for_at_once() -> None:
    """Rounds do not grow with layers."""
    each = WINDOW_BYTES // 3
    first = [Turn(0, False), Turn(1, False), Turn(2, False), Turn(0, True), Turn(3, False), Turn(1, True)]
    assert [*turns([each] * 4)][:6] == first


def test_layers_of_several_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    layers = [layer_of(9, 13, 3, count, f"cell {count}/relu") for count in (SEVERAL, 65, CUT + 64)]
    assert [cut.shape.count for cut in cuts_of(layers)] == [CUT, CUT, 77, 65, CUT, 64]
    xs = [(np.arange(layer.shape.count) % 511 - 255).astype(np.uint64) & layer.shape.ring_mask for layer in layers]
    requests = [offline_messages(cut.shape).request for cut in cuts_of(layers)]
    for window in (WINDOW_BYTES, 2 * requests[0], 1):  # all at once, some, one batch at a time
        monkeypatch.setattr(gmw_cuts, "WINDOW_BYTES", window)
        run = run_layers("gmw", layers, xs)
        assert run.results == [expected(layer, x) for layer, x in zip(layers, xs, strict=True)]
        sizes = [offline_messages(cut.shape).total + 4 * HEADER_BYTES for cut in cuts_of(layers)]
        assert run.server.record.total("offline").bytes == sum(sizes)


@pytest.mark.parametrize("ring_bits", [32, 33])
@pytest.mark.parametrize("count", [100, CUT + 64])
def test_ring_elements_are_kept_as_narrow_as_they_are(ring_bits: int, count: int) -> None:
    layer = layer_of(9, ring_bits, 3, count)
    materials = Materials([layer])
    elements = np.random.default_rng(0).integers(0, 2**ring_bits, (6, count), np.uint64)
    planes = np.random.default_rng(1).integers(0, 2**64, (3, layer.shape.words), np.uint64)
    for cut in cuts_of([layer]):
        words = slice(cut.start // 64, cut.start // 64 + cut.shape.words)
        materials.put(cut, {"arithmetic": elements[:, cut.own], "bits": planes[:, words]})
    (kept,) = materials.arrays
    assert kept["arithmetic"].dtype == ring_dtype(ring_bits)
    assert kept["bits"].dtype == np.uint64
    widened = as_words(kept)
    np.testing.assert_array_equal(widened["arithmetic"], elements)
    np.testing.assert_array_equal(widened["bits"], planes)
