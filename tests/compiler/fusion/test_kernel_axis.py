"""Windows along one axis: which outputs read which positions, and which taps meet a pixel, found without trying all."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sphynx.compiler.fusion.graph_builder import _useful
from sphynx.compiler.fusion.kernel_axis import Along, Sliding

SMALL, ODD = st.integers(1, 9), st.integers(-9, 9)


@given(st.builds(Along, taps=SMALL, outputs=SMALL, stride=SMALL, dilation=SMALL, before=ODD), st.data())
def test_reads_between_two_positions_are_those_of_all_reads(along: Along, data: st.DataObject) -> None:
    tap, bounds = data.draw(st.integers(0, along.taps - 1)), st.none() | st.integers(-30, 120)
    first, end = data.draw(bounds), data.draw(bounds)
    wanted = [
        (output, position)
        for output, position in along.reads(tap)
        if (first is None or position >= first) and (end is None or position < end)
    ]
    assert len(list(along.reads(tap))) == along.outputs
    assert list(along.reads(tap, first, end)) == wanted


@given(st.builds(Sliding, length=SMALL, stride=SMALL, before=ODD, taps=SMALL), st.integers(1, 9), st.data())
def test_useful_taps_are_those_that_some_output_multiplies_with_a_pixel(
    axis: Sliding, outputs: int, data: st.DataObject
) -> None:
    used = np.array(data.draw(st.lists(st.booleans(), min_size=axis.taps, max_size=axis.taps)))
    wanted = [
        tap
        for tap in np.flatnonzero(used).tolist()
        if any(0 <= axis.stride * output - axis.before + tap < axis.length for output in range(outputs))
    ]
    assert _useful(used, axis, outputs) == (wanted or [0])
