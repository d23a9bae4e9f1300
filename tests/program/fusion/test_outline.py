"""What an outline keeps of its compositions: each is the one that was asked for, and a node of its own."""

import numpy as np

from sphynx.program.fusion.affine import Window, compose, used_taps
from sphynx.program.fusion.fuse import Fuser
from sphynx.space.tally import Shape

WINDOW = Window(2, 2, 5, 5)


def outlined() -> Fuser:
    return Fuser(Shape(2, 6, 6), (0.0,) * 2, (1.0,) * 2, outline=True)


def test_kept_compositions_are_those_of_their_weights() -> None:
    fuser, full = outlined(), np.ones((3, 2, 2, 2))
    half = full.copy()
    half[:, :, 1] = 0
    for weights in (full, half, full):
        made = fuser.convolve(fuser.input, weights, WINDOW)
        wanted = compose(fuser.settled(fuser.input), used_taps(weights), WINDOW, 3)
        assert made.shape == wanted.shape and np.array_equal(made.bias, wanted.bias)
        assert made.kernels.keys() == wanted.kernels.keys()
        assert all(np.array_equal(kernel, wanted.kernels[reads]) for reads, kernel in made.kernels.items())


def test_two_convolutions_of_a_map_are_two_maps_though_an_outline_sees_no_difference() -> None:
    fuser, weights = outlined(), np.ones((3, 2, 2, 2))
    first, second = (fuser.convolve(fuser.input, weights, WINDOW) for _ in range(2))
    assert (fuser.compared(first, "first"), fuser.compared(second, "second")) == ("first", "second")
