"""Means and sums along axes: fused they equal ONNX's own reference evaluator."""

from math import prod
from pathlib import Path

import numpy as np
import pytest

from tests.compiler.frontend.onnx_models import Maker
from tests.compiler.frontend.test_onnx import assert_equal, statistics


@pytest.mark.parametrize("keepdims", [0, 1])
def test_the_mean_over_rows_and_columns(keepdims: int, tmp_path: Path) -> None:
    make = Maker()
    x = make.node("ReduceMean", make.node("Relu", make.conv("x", 1, 4)), axes=[-1, 2], keepdims=keepdims)
    assert_equal(make.model(make.dense(make.node("Flatten", x), 4, 3)), tmp_path)
    make = Maker()
    x = make.node("ReduceMean", make.conv("x", 1, 4), make.constant([2, 3]), keepdims=keepdims)
    assert_equal(make.model(make.dense(make.node("Flatten", x), 4, 3), opset=18), tmp_path)


# By number, with axes kept or not: an axis that is not kept moves those behind it.
ONE_BY_ONE = [
    *(((axes), 0) for axes in ((3, 2), (2, 2), (-1, -1), (1, 2), (3, 1), (1, -1))),
    *(((axes), 1) for axes in ((3, 2), (2, 3), (-1, -2), (1, 3))),
]


@pytest.mark.parametrize("axes, keepdims", ONE_BY_ONE)
@pytest.mark.parametrize("kinds", [("ReduceMean", "ReduceMean"), ("ReduceSum", "ReduceMean")])
@pytest.mark.parametrize("activation", ["Relu", "Identity"])
def test_one_axis_at_a_time(
    activation: str, kinds: tuple[str, str], axes: tuple[int, int], keepdims: int, tmp_path: Path
) -> None:
    make = Maker(("n", 2, 7, 5))
    x = make.node(activation, make.conv("x", 2, 4, pads=[1, 1, 1, 1]))
    shape = [4, 7, 5]
    for kind, axis in zip(kinds, axes, strict=True):
        if kind == "ReduceSum":  # whose axes are an input since opset 13
            x = make.node(kind, x, make.constant([axis]), keepdims=keepdims)
        else:
            x = make.node(kind, x, axes=[axis], keepdims=keepdims)
        place = axis % (len(shape) + 1) - 1
        shape[place : place + 1] = [1] if keepdims else []
    assert_equal(make.model(make.dense(make.node("Flatten", x), prod(shape), 3)), tmp_path)


def test_means_that_follow_each_other_are_one_public_map(tmp_path: Path) -> None:
    def steps(*axes: list[int]) -> list[type]:
        make = Maker(("n", 1, 9, 6))
        x = make.conv("x", 1, 4)
        for each in axes:
            x = make.node("ReduceMean", x, axes=each, keepdims=0)
        network = assert_equal(make.model(make.dense(x, 4, 3)), tmp_path)
        return [type(step) for step in network.trace(*statistics(network)).graph.steps]

    assert steps([3], [2]) == steps([-1], [-1]) == steps([2, 3])


def test_a_mean_that_others_read_too(tmp_path: Path) -> None:
    make = Maker(("n", 1, 7, 5))
    axes = [make.constant([3]), make.constant([2]), make.constant(np.zeros(0, np.int64))]
    rows = make.node("ReduceMean", make.node("Relu", make.conv("x", 1, 4)), axes[0])
    both = make.node("Concat", make.node("ReduceMean", rows, axes[1]), rows, axis=2)
    both = make.node("ReduceMean", both, axes[2], noop_with_empty_axes=1)
    assert_equal(make.model(make.dense(make.node("Flatten", both), 24, 3), opset=18), tmp_path)


def test_a_sum_of_a_vector(tmp_path: Path) -> None:
    make = Maker(("n", 1, 4, 5))
    x = make.node("ReduceSum", make.node("Relu", make.dense(make.node("Flatten", "x"), 20, 6)), make.constant([1]))
    assert_equal(make.model(make.dense(x, 1, 3)), tmp_path)
