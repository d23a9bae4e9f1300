"""The input of a program, as a client feeds it: integers of a few bits, each of which stands for a real number. Public.

An input is a picture, 8-bit pixels that stand for 0 .. 1, or numbers of a range that calibration found: integer n of
`bits` bits stands for low + n (high - low) / (2^bits - 1). A client clips to the range and rounds to the nearest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sphynx.errors import InputError
from sphynx.program.convolve import Array
from sphynx.program.limits import LARGEST_NUMBER, MAX_AXES, MAX_INPUT_BITS, MIN_PICTURE_PART, PIXEL_BITS
from sphynx.space.tally import Shape

InputKind = Literal["picture", "numbers"]


@dataclass(frozen=True)
class Input:
    """The way from a client's array to the integers that a program reads.

    >>> sound = sphynx.Input("numbers", bits=12, low=(-1.0,), high=(1.0,), dims=(1, 16000))
    >>> sound.largest, sound.accepts_files
    (4095, False)
    """

    kind: InputKind = "picture"
    bits: int = PIXEL_BITS
    low: tuple[float, ...] = (0.0,)  # what 0 stands for; one number, or one for each channel
    high: tuple[float, ...] = (1.0,)  # what the largest integer stands for
    dims: tuple[int, ...] = ()  # of the array that a client gives, where they are not channels, height, width
    name: str = ""  # as the network calls it
    picture_part: float = 1.0  # along either side, in the middle: what of a picture file the network is to be shown

    def __post_init__(self) -> None:
        for bounds in ("low", "high"):  # one and 1.0 are equal, but not as JSON, whose hash names the program
            object.__setattr__(self, bounds, tuple(map(float, getattr(self, bounds))))

    @property
    def largest(self) -> int:
        return (1 << self.bits) - 1

    @property
    def accepts_files(self) -> bool:
        """Return whether picture files may be given."""
        return self.kind == "picture"

    @property
    def dtype(self) -> type[np.uint8] | type[np.uint16]:
        """The type of the integers."""
        return np.uint8 if self.bits <= PIXEL_BITS else np.uint16

    def given_dims(self, image: Shape) -> tuple[int, ...]:
        """The dimensions of one array that a client gives."""
        return self.dims or tuple(image)

    @cached_property
    def units(self) -> NDArray[np.float64]:
        """The difference that a step of one stands for; one number, or one for each channel."""
        units: NDArray[np.float64] = (np.array(self.high) - np.array(self.low)) / self.largest
        return units

    def faults_for(self, image: Shape) -> Iterator[str]:
        """List what is wrong with it for an input of this shape."""
        if not MIN_PICTURE_PART <= self.picture_part <= 1:
            yield f"the part of a picture is {self.picture_part}, outside {MIN_PICTURE_PART} .. 1"
        if not 1 <= self.bits <= MAX_INPUT_BITS:
            yield f"the input has {self.bits} bits, outside 1 .. {MAX_INPUT_BITS}"
        if not {len(self.low), len(self.high)} <= {1, image.channels}:
            yield f"the input has {len(self.low)} lowest and {len(self.high)} highest numbers, not 1 or one per channel"
        elif not all(abs(bound) <= LARGEST_NUMBER for bound in (*self.low, *self.high)):
            yield f"a bound of the input is beyond {LARGEST_NUMBER:g}"
        elif not (np.array(self.low) < np.array(self.high)).all():
            yield "a lowest number of the input is not below the highest one"
        if len(self.dims) > MAX_AXES or (self.dims and (min(self.dims) < 1 or prod(self.dims) != image.size)):
            yield f"the input's dimensions {list(self.dims)} do not fit {image}"
        if self.kind == "picture" and (self.bits, self.low, self.high, self.dims) != (PIXEL_BITS, (0.0,), (1.0,), ()):
            yield "a picture has 8-bit pixels that stand for 0 .. 1"
        if self.kind != "picture" and self.picture_part != 1:
            yield "only a picture has a part that is shown"

    def quantise(self, given: Any, image: Shape, *, where: str) -> Array:
        """Turn real numbers [..., dims] into the program's integers [..., channels, height, width], clipped."""
        array = np.asarray(given)
        dims = self.given_dims(image)
        if array.dtype.kind not in "fiub" or array.shape[array.ndim - len(dims) :] != dims:
            raise InputError(
                f"the array is {array.dtype} of shape {array.shape}",
                where=where,
                remedy=f"This program reads numbers of shape {dims}.",
            )
        numbers = array.astype(np.float64).reshape(*array.shape[: array.ndim - len(dims)], *image)
        if not np.isfinite(numbers).all():
            raise InputError("the array has values that are not finite numbers", where=where, remedy="Replace them.")
        low, high = (np.array(bounds).reshape(-1, 1, 1) for bounds in (self.low, self.high))
        made: Array = np.rint((np.clip(numbers, low, high) - low) / self.units.reshape(-1, 1, 1)).astype(self.dtype)
        return made

    def real(self, integers: Array) -> NDArray[np.float64]:
        """Give the real numbers that integers [n, channels, height, width] stand for."""
        found: NDArray[np.float64] = np.array(self.low).reshape(-1, 1, 1) + integers * self.units.reshape(-1, 1, 1)
        return found


PICTURE = Input()
