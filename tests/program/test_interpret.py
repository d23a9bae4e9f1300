"""The interpreter against Python's own integers, and what it refuses."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sphynx.errors import InputError, SphynxError
from sphynx.program.convolve import convolve
from sphynx.program.interpret import interpret
from sphynx.program.ir import Combine, Linear, Program, Term
from tests.program.programs import (
    gated_program,
    naive,
    public_program,
    random_inputs,
    random_weights,
    several_program,
    small_program,
)


@settings(max_examples=15)
@given(
    seed=st.integers(0, 2**32 - 1),
    make=st.sampled_from([small_program, public_program, gated_program, several_program]),
)
def test_it_computes_what_the_steps_say(seed: int, make: Callable[..., Program]) -> None:
    program = make(ring_bits=64)
    weights = random_weights(program, seed)
    pixels = random_inputs(program, 2, seed)
    wide = tuple(
        replace(s, range_bits=63) if isinstance(s, Linear | Combine) and s.range_bits else s for s in program.steps
    )
    got = interpret(replace(program, steps=wide), weights, pixels)
    assert got.tolist() == [naive(program, weights, image) for image in pixels]


def test_many_images_are_split_into_batches() -> None:
    program = wide_program()
    weights = random_weights(program)
    pixels = np.random.default_rng(0).integers(0, 256, (130, 2, 5, 5), dtype=np.uint8)
    whole = interpret(program, weights, pixels)
    assert whole.shape == (130, 4)
    assert (whole[100:110] == interpret(program, weights, pixels[100:110])).all()
    assert interpret(program, weights, pixels[:0]).shape == (0, 4)


@pytest.mark.parametrize("magnitude", [1 << 10, 1 << 44, 1 << 50])
def test_large_integers_stay_exact(magnitude: int) -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(-magnitude, magnitude, (1, 3, 4, 4))
    weights = rng.integers(-127, 128, (2, 3, 3, 3)).astype(np.int8)
    got = convolve(x, weights, Term("x", 3, 3, 1, 1, 1, 1), (4, 4))
    field = np.pad(x[0].astype(object), ((0, 0), (1, 1), (1, 1)))
    for o, y, z in np.ndindex(2, 4, 4):
        assert int(got[0, o, y, z]) == (field[:, y : y + 3, z : z + 3] * weights[o].astype(object)).sum()


def test_beyond_64_bits_is_an_error_with_the_layers_name() -> None:
    program = wide_program()
    weights = random_weights(program)
    weights["link/bias"] = np.full_like(weights["link/bias"], 2**61)
    with pytest.raises(SphynxError, match=r"second: .*64 bits"):
        interpret(program, weights, np.zeros((1, 2, 5, 5), np.uint8))


def test_a_value_outside_its_range_is_an_error_with_the_layers_name() -> None:
    program = small_program()
    weights = random_weights(program)
    weights["first/bias"] = np.full_like(weights["first/bias"], -(2**19))
    with pytest.raises(SphynxError, match=r"first: .*20 bits") as overflow:
        interpret(program, weights, np.zeros((1, 2, 5, 5), np.uint8))
    assert "`calibrate=DATA`" in overflow.value.remedy


def test_a_sum_is_held_to_its_range_and_to_64_bits() -> None:
    program = public_program()
    weights = random_weights(program)
    weights["first/bias"] = np.full_like(weights["first/bias"], 2**20)
    with pytest.raises(SphynxError, match=r"max: .*20 bits"):
        interpret(program, weights, np.zeros((1, 2, 5, 5), np.uint8))
    weights["first/bias"] = np.full_like(weights["first/bias"], 2**62)
    with pytest.raises(SphynxError, match=r"difference: .*64 bits"):
        interpret(program, weights, np.zeros((1, 2, 5, 5), np.uint8))


def test_images_of_another_shape_or_kind_are_refused() -> None:
    program = small_program()
    for pixels in (np.zeros((1, 3, 5, 5), np.uint8), np.zeros((1, 2, 5, 5), np.float32)):
        with pytest.raises(InputError) as refusal:
            interpret(program, random_weights(program), pixels)
        assert "[n, 2, 5, 5]" in refusal.value.remedy


def wide_program() -> Program:
    program = small_program(ring_bits=64)
    steps = tuple(replace(s, range_bits=64) if isinstance(s, Linear) and s.range_bits else s for s in program.steps)
    return replace(program, steps=steps)
