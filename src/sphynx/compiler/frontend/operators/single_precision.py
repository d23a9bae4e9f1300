"""Files keep numbers in single precision: which one was meant. No torch."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

_LARGEST_DENOMINATOR = 1000


def meant(number: float) -> Fraction:
    """The small fraction that was rounded to this finite number, such as 1/6 or 4/3; else the number itself."""
    small = Fraction(number).limit_denominator(_LARGEST_DENOMINATOR)
    return small if np.float32(float(small)) == np.float32(number) else Fraction(number)
