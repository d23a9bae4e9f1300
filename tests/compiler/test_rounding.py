"""Factors of public sums: near what they stand for, and exact where few bits are."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sphynx.compiler.fusion.fit import SLOPE_BITS
from sphynx.compiler.quantise import FACTOR_BITS, rounded_factors


@given(st.lists(st.floats(-8, 8), min_size=1, max_size=5).filter(lambda real: max(map(abs, real)) > 1e-6))
def test_factors_are_off_by_half_a_unit_of_the_largest(real: list[float]) -> None:
    factors, scale = rounded_factors(np.array(real))
    largest = max(map(abs, real))
    assert max(abs(factor) for factor in factors) <= 1 << FACTOR_BITS
    assert max(abs(factor / 2**scale - wanted) for factor, wanted in zip(factors, real, strict=True)) <= (
        largest / 2 ** (FACTOR_BITS - 1)
    )


@given(st.lists(st.integers(1 - (1 << SLOPE_BITS), (1 << SLOPE_BITS) - 1), min_size=1, max_size=9).filter(any))
def test_fitted_slopes_are_kept_in_their_own_bits(slopes: list[int]) -> None:
    factors, scale = rounded_factors(np.array(slopes) / 2**10)
    assert [factor / 2**scale for factor in factors] == [slope / 2**10 for slope in slopes]
    assert max(abs(factor) for factor in factors) <= max(map(abs, slopes))


def test_a_hard_swish_is_exact_to_a_few_parts_in_a_hundred_thousand() -> None:
    factors, scale = rounded_factors(np.array([1 / 6, -1 / 2, 3 / 2]))
    assert abs(factors[0] / 2**scale * 6 - 1) < 1e-4
