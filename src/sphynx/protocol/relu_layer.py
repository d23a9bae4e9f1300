"""One ReLU layer of a program as the protocol sees it: public, the same at both parties."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sphynx.core.gmw import ReluShape
from sphynx.errors import InputError
from sphynx.program.ir import Program, Relu, Square, Truncate

Words = NDArray[np.uint64]
Arrays = dict[str, NDArray[Any]]


def range_bits(program: Program, step: Relu | Square | Truncate) -> int:
    """Bits of what a step reads. A range is also a range of more bits: a ReLU's truncation must leave one beside the
    sign."""
    w = program.ranges[step.source]
    return max(w, step.truncate + 2) if isinstance(step, Relu) else w


@dataclass(frozen=True)
class ReluLayer:
    """`count` ReLUs with truncation: max(x, 0) >> f mod 2^k for |x| < 2^(w-1)."""

    name: str
    shape: ReluShape

    @classmethod
    def planned(cls, name: str, *, w: int, k: int, f: int, count: int) -> ReluLayer:
        """Refuses by name what the protocols do not compute. With f = w - 1 the layer would be constantly 0."""
        try:
            return cls(name, ReluShape(w, k, f, count))
        except ValueError:
            raise InputError(
                f"{count:,} ReLUs on {w} bits in a ring of {k}, truncated by {f}: a ReLU needs 2 bits or more, a ring "
                "of at least as many and at most 64, and a truncation that leaves a bit beside the sign",
                where=name,
                remedy="Compile with more `activation_bits`, or with calibration data that is more like the inputs.",
            ) from None
