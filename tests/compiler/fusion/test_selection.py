"""Selections as summands of a public sum: the integers that they give are those that indexing gives."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sphynx.compiler.fusion.selection import Index, Selection, pick
from sphynx.program.combine import combined
from sphynx.program.convolve import Array
from sphynx.program.steps import NOTHING, Combine
from sphynx.space.tally import Shape

SHAPE = Shape(3, 4, 5)
TENSOR = np.arange(1, 1 + SHAPE.size).reshape(1, *SHAPE)


def as_summand(selection: Selection) -> Array:
    shape = Shape(*map(len, (selection.channels, selection.rows, selection.columns)))
    return combined(Combine("sum", (selection.summand(),), shape), {"x": TENSOR})


def by_indexing(selection: Selection) -> Array:
    found = TENSOR
    for axis, index in enumerate((selection.channels, selection.rows, selection.columns), start=1):
        read = np.take(found, np.maximum(index, 0), axis)
        found = np.where(np.array(index).reshape(-1, *[1] * (3 - axis)) == NOTHING, 0, read)
    return -found if selection.negative else found


@pytest.mark.parametrize("axis", range(3))
def test_a_permuted_axis_is_not_taken_for_a_whole_one(axis: int) -> None:
    turned = Selection.whole("x", SHAPE).selected(*pick(axis, tuple(reversed(range(SHAPE[axis])))))
    assert np.array_equal(as_summand(turned), np.flip(TENSOR, axis + 1))


@pytest.mark.parametrize("axis", range(3))
def test_an_axis_shifted_against_its_border_is_not_taken_for_a_whole_one(axis: int) -> None:
    shifted = Selection.whole("x", SHAPE).selected(*pick(axis, (NOTHING, *range(SHAPE[axis] - 1))))
    wanted = np.roll(TENSOR, 1, axis + 1)
    wanted[(slice(None),) * (axis + 1) + (0,)] = 0
    assert np.array_equal(as_summand(shifted), wanted)


def test_a_whole_tensor_is_written_without_indices() -> None:
    summand = Selection.whole("x", SHAPE).summand()
    assert summand.indices == ((), (), ()) and np.array_equal(as_summand(Selection.whole("x", SHAPE)), TENSOR)


def indices(length: int) -> st.SearchStrategy[Index | None]:
    read = st.lists(st.integers(NOTHING, length - 1), min_size=1, max_size=length + 2).map(tuple)
    return st.none() | st.permutations(range(length)).map(tuple) | read


@given(*map(indices, SHAPE), st.booleans())
def test_any_selection_reads_what_indexing_reads(
    channels: Index | None, rows: Index | None, columns: Index | None, negative: bool
) -> None:
    chosen = replace(Selection.whole("x", SHAPE).selected(channels, rows, columns), negative=negative)
    assert np.array_equal(as_summand(chosen), by_indexing(chosen))
