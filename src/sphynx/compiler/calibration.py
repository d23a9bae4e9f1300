"""Decide what clients of a program will feed it, from data like that: pictures, or numbers of a calibrated range.

    pixels: uint8, or floats that are pixel / 255           a picture: 8 bits that stand for 0 .. 1
    whole numbers of more bits, such as 16-bit samples      numbers, each of which is kept
    other floats, such as sound or features                 numbers from the smallest to the largest, in 12 bits

A network sees (x - mean) / std of real numbers x, a picture's being pixel / 255. Everything behind this module knows
integers n and pixels alone: it takes n / 255 for x, and the mean and the deviation are moved and stretched to fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from sphynx.compiler.settings import CompileSettings
from sphynx.data.images import Statistics
from sphynx.data.samples import Samples, as_pixels, pixels_for, shaped
from sphynx.errors import InputError
from sphynx.program.convolve import Array
from sphynx.program.inputs import Input
from sphynx.program.ir import Program
from sphynx.program.limits import LARGEST_NUMBER, MAX_INPUT_BITS
from sphynx.space.tally import Shape

FLOAT_BITS = 12  # of numbers that are not whole
_PIXEL = 255


@dataclass(frozen=True, eq=False)
class Calibration:
    """Calibration data as a program's integers, and what these mean."""

    source: Input
    integers: Array  # [n, channels, height, width]
    mean: Statistics  # of integers over 255
    std: Statistics


def calibrate(
    samples: Samples,
    image: Shape,
    mean: Statistics,
    std: Statistics,
    settings: CompileSettings,
    *,
    name: str = "",
    dims: tuple[int, ...] = (),
) -> Calibration:
    """`name` and `dims` are the input's own, the latter where they are not channels, height, width."""
    whole = shaped(samples.images, image)
    asked = settings.input_range is not None or settings.input_bits is not None
    pixels = None if asked else as_pixels(whole, mean, std)
    if pixels is not None:
        return Calibration(Input(picture_part=samples.picture_part, name=name), pixels, mean, std)
    if whole.dtype.kind not in "fiu":
        pixels_for(samples.images, image, mean, std)  # refuses them
    low, high, bits = _range_of(whole, settings, samples.name)
    own = () if prod(dims) != image.size or dims == tuple(image) else dims
    source = Input("numbers", bits, (low,), (high,), own, name)
    settings.warn(
        f"{samples.name}: the program reads numbers, not pictures: {low:g} to {high:g} in {bits} bits; clients clip to "
        "that range (`input_range`, `input_bits`)"
    )
    unit = _PIXEL * float(source.units[0])
    moved = tuple((each - low) / unit for each in mean)
    stretched = tuple(each / unit for each in std)
    return Calibration(source, integers_for(whole, image, source), moved, stretched)


def integers_for(images: Array, image: Shape, source: Input) -> Array:
    """Turn images, or numbers in any layout of as many, into a program's integers."""
    if source.kind == "picture":
        return pixels_for(images, image)
    whole = shaped(images, image)
    return source.quantise(whole.reshape(len(whole), *source.given_dims(image)), image, where="data")


def integers_of(samples: Samples, program: Program) -> Array:
    """Turn samples into a program's integers."""
    return integers_for(samples.images, program.image, program.input)


def _range_of(numbers: Array, settings: CompileSettings, where: str) -> tuple[float, float, int]:
    """The range and the bits: those that the settings give, else those of the data."""
    if not np.isfinite(numbers).all() or np.abs(numbers).max() > LARGEST_NUMBER:
        raise InputError("it has values that are not finite numbers", where=where, remedy="Replace them.")
    bits = settings.input_bits
    if settings.input_range is not None:
        low, high = settings.input_range
        return low, high, bits or FLOAT_BITS
    low, high = float(numbers.min()), float(numbers.max())
    if numbers.dtype.kind in "iu" and bits is None:
        span = max(int(high), -int(low) - 1, 1).bit_length()
        if span + (low < 0) <= MAX_INPUT_BITS:  # every whole number, and zero, is one of the integers
            return (-(2.0**span) if low < 0 else 0.0), 2.0**span - 1, span + (low < 0)
        bits = MAX_INPUT_BITS
    if low == high:
        raise InputError(
            f"all of its numbers are {low:g}", where=where, remedy="Give other data, or the range as `input_range`."
        )
    return low, high, bits or FLOAT_BITS
