"""Maps by the compiled core against the interpreter's numbers, up to where 32 and 64 bits end."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sphynx.compiler.trial import linear_map
from sphynx.program.convolve import Array, magnitude
from sphynx.program.interpret import apply_step
from sphynx.program.ir import INPUT, Linear, Term
from sphynx.space.tally import Shape

SHAPE = Shape(4, 3, 3)
STEP = Linear("map", (Term("a", 3, 3, 2, 1, 1, 1), Term("b", 1, 1, shift=3)), SHAPE)


def case(bits: int, weight_bits: int, *, signed: bool, seed: int) -> tuple[dict[str, Array], dict[str, Array]]:
    random = np.random.default_rng(seed)
    low = -(1 << bits) + 1 if signed else 0
    tensors: dict[str, Array] = {
        "a": random.integers(low, 1 << bits, (3, 5, 6, 6)),
        "b": random.integers(low, 1 << bits, (3, 2, 3, 3)),
    }
    top = (1 << (weight_bits - 1)) - 1
    weights: dict[str, Array] = {
        STEP.weight_name(0): random.integers(-top, top + 1, (4, 5, 3, 3)).astype(np.int16),
        STEP.weight_name(1): random.integers(-top, top + 1, (4, 2, 1, 1)).astype(np.int16),
        STEP.bias_name: random.integers(-1 << 40, 1 << 40, SHAPE),
    }
    return tensors, weights


@given(bits=st.integers(1, 62), weight_bits=st.integers(2, 16), signed=st.booleans(), seed=st.integers(0, 2**32 - 1))
@example(bits=11, weight_bits=14, signed=False, seed=0)  # 2^31 is out of reach of the sums
@example(bits=14, weight_bits=16, signed=True, seed=0)  # of those of both halves of the weights
@example(bits=40, weight_bits=16, signed=True, seed=0)  # of no half
def test_the_core_computes_what_the_interpreter_does(bits: int, weight_bits: int, signed: bool, seed: int) -> None:
    tensors, weights = case(bits, weight_bits, signed=signed, seed=seed)
    sizes = {name: magnitude(tensor) for name, tensor in tensors.items()}
    try:
        wanted = apply_step(STEP, tensors, weights)
    except OverflowError:
        with pytest.raises(OverflowError):
            linear_map(STEP, [tensors], weights, sizes)(tensors)
        return
    got = linear_map(STEP, [tensors], weights, sizes)(tensors)
    assert got.dtype == np.int64
    assert got.tolist() == wanted.tolist()


@pytest.mark.parametrize("largest", [2**31 - 1, 2**31, 2**31 + 1, 2**38 - 2**31])
@pytest.mark.parametrize("sign", [1, -1])
def test_sums_at_the_end_of_32_bits(largest: int, sign: int) -> None:
    step = Linear("map", (Term(INPUT, 1, 1),), Shape(1, 1, 1))
    tensors = {INPUT: np.array([largest, 1]).reshape(1, 2, 1, 1)}
    weights = {step.weight_name(0): np.array([sign, sign], np.int8).reshape(1, 2, 1, 1)}
    weights[step.bias_name] = np.zeros((1, 1, 1), np.int64)
    assert linear_map(step, [tensors], weights, {INPUT: largest})(tensors).item() == sign * (largest + 1)
