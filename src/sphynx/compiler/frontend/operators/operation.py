"""One operator's use in a graph: as a reader finds it, and with the names that the program gives it. No torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sphynx.compiler.frontend.operators.sizes import Allowance
from sphynx.errors import InputError
from sphynx.program.convolve import Array

NO_BATCH = "Adaptive pool of a map without a batch"  # which torch's pools take
ROUNDING_CAST = "Cast to whole numbers"  # of either reader; casts between floats do nothing
CURVED = ("Sigmoid", "Tanh", "Swish", "Gelu", "Mish", "Softplus", "Elu", "Exp", "Log")  # as curves.py calls them
NORMS = ("LayerNormalization", "GroupNormalization", "InstanceNormalization")
# What is compiled only where it may be approximated.
SMOOTH = (*CURVED, "Sqrt", "Reciprocal", "Softmax", *NORMS)
NONLINEAR = (
    "Relu",
    "Clip",
    "HardSigmoid",
    "HardSwish",
    "LeakyRelu",
    "PRelu",
    "MaxPool",
    "GlobalMaxPool",
    "ReduceMax",
    "Max",
    "Min",
    *SMOOTH,
)

# What a call on constants alone gives, by name; it takes from the allowance before it computes.
Fold = Callable[["Operation", Mapping[str, Array], Allowance], dict[str, Array]]


@dataclass(frozen=True, eq=False)
class Call:
    """One operator's use, as a reader finds it."""

    kind: str
    name: str  # as its maker named it; not always unique
    place: str  # for errors
    inputs: tuple[str, ...]  # empty where an optional one is left out
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    fold: Fold | None = None  # None where readers leave no call on constants alone


@dataclass(frozen=True, eq=False)
class Operation:
    kind: str  # the operator
    label: str  # the file and the node in it, for errors
    place: str  # the node alone
    part: str
    word: str  # unique, without a dot
    inputs: tuple[str, ...]  # empty where an optional one is left out
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    opset: int
    fold: Fold | None = None

    @property
    def name(self) -> str:
        return f"{self.part}.{self.word}"

    def refusal(self, what: str, remedy: str) -> InputError:
        return InputError(f"{self.kind} {what}", where=self.label, remedy=remedy)
