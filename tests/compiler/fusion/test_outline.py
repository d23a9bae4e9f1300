"""Compositions that an outline keeps: each is the one that was asked for, and a node of its own."""

import numpy as np

from sphynx.compiler.fusion.affine import Floats, Node, Window, compose, used_taps
from sphynx.compiler.fusion.fuse import Fuser
from sphynx.space.tally import Shape

WINDOW = Window(2, 2, 5, 5)


def outlined() -> Fuser:
    return Fuser(Shape(2, 6, 6), (0.0,) * 2, (1.0,) * 2, outline=True)


def assert_composed(fuser: Fuser, node: Node, weights: Floats) -> Node:
    made = fuser.convolve(node, weights, WINDOW)
    wanted = compose(fuser.settled(node), used_taps(weights), WINDOW, len(weights))
    assert made.shape == wanted.shape and np.array_equal(made.bias, wanted.bias)
    assert made.kernels.keys() == wanted.kernels.keys()
    assert all(np.array_equal(kernel, wanted.kernels[reads]) for reads, kernel in made.kernels.items())
    return made


def test_kept_compositions_are_those_of_their_weights_and_of_what_they_read() -> None:
    fuser, full = outlined(), np.ones((3, 2, 2, 2))
    half = full.copy()
    half[:, :, 1] = 0
    made = [assert_composed(fuser, fuser.input, weights) for weights in (full, half, full)]
    for node in (*made, fuser.shift(made[0], np.ones(1))):
        assert_composed(fuser, node, np.ones((3, 3, 2, 2)))


def test_two_convolutions_of_a_map_are_two_maps_though_an_outline_sees_no_difference() -> None:
    fuser, weights = outlined(), np.ones((3, 2, 2, 2))
    first, second = (fuser.convolve(fuser.input, weights, WINDOW) for _ in range(2))
    assert (fuser.compared(first, "first"), fuser.compared(second, "second")) == ("first", "second")
