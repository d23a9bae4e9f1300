"""Convolutions by transformed tiles against those by unfolded inputs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sphynx.compiler.winograd import TiledKernel, pays
from sphynx.program.convolve import Kernel
from sphynx.program.steps import Term


@settings(max_examples=60)
@given(
    sides=st.tuples(st.integers(1, 15), st.integers(1, 15)),
    size=st.tuples(st.integers(1, 15), st.integers(1, 15)),
    pads=st.tuples(st.integers(-3, 4), st.integers(-3, 4)),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_padding_and_size(sides: tuple[int, int], size: tuple[int, int], pads: tuple[int, int], seed: int) -> None:
    random = np.random.default_rng(seed)
    x, weights = random.normal(size=(2, 5, *sides)), random.normal(size=(4, 5, 3, 3))
    term = Term("x", 3, 3, pad_top=pads[0], pad_left=pads[1])
    np.testing.assert_allclose(TiledKernel(weights, term)(x, size), Kernel(weights, term)(x, size), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("channels", "kernel", "term", "size", "wanted"),
    [
        (64, 3, Term("x", 3, 3), (14, 14), True),
        (64, 3, Term("x", 3, 3, 2), (14, 14), False),
        (64, 3, Term("x", 3, 3, 1, 2), (14, 14), False),
        (64, 5, Term("x", 5, 5), (14, 14), False),
        (3, 3, Term("x", 3, 3), (14, 14), False),
        (64, 3, Term("x", 3, 3), (7, 7), False),
    ],
)
def test_where_it_pays(channels: int, kernel: int, term: Term, size: tuple[int, int], *, wanted: bool) -> None:
    assert pays(np.zeros((32, channels, kernel, kernel)), term, size) == wanted
