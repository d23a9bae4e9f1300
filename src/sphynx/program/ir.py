"""The program: what both parties compute, as integers between ReLUs. The artifact `program.json`, which is public.

    pixels (uint8) -> linear maps -> ReLU, truncation -> linear maps -> ... -> logits

A step (steps.py) names the tensor it makes and the earlier tensors it reads. Only shapes, scales and widths are here;
the weights are the server's alone and lie elsewhere, under the names of `Program.weight_shapes`. A tensor's integers
stand for real numbers times 2^scale. The last step makes the logits.

The same steps with real weights, no shifts and no truncation are the fused network before quantisation: a `Graph`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from sphynx.errors import InputError, join_faults
from sphynx.program.faults import range_faults, stated_ranges, structural_faults
from sphynx.program.steps import (
    KINDS,
    MAX_EXTENT,
    MAX_RING_BITS,
    MAX_SCALE,
    MAX_TENSOR_SIZE,
    NOTHING,
    Activation,
    Affine,
    Combine,
    Curve,
    Final,
    Gate,
    Linear,
    Pool,
    PublicMap,
    Relu,
    Square,
    Step,
    Summand,
    Term,
    Truncate,
    made_shape,
)
from sphynx.space.tally import Shape

__all__ = [
    "INPUT",
    "KINDS",
    "MAX_EXTENT",
    "MAX_RING_BITS",
    "MAX_SCALE",
    "MAX_TENSOR_SIZE",
    "NOTHING",
    "REMEDY",
    "Activation",
    "Affine",
    "Combine",
    "Curve",
    "Final",
    "Gate",
    "Graph",
    "Linear",
    "Pool",
    "Program",
    "PublicMap",
    "Relu",
    "Square",
    "Step",
    "Summand",
    "Term",
    "Truncate",
]

FORMAT_NAME, FORMAT_VERSIONS = "sphynx-program", (1, 2)
INPUT = "pixels"
MIN_PICTURE_PART = 0.5  # a client makes the whole picture that large before it cuts

REMEDY = "Compile the network again: sphynx compile RUN -o DIR."


@dataclass(frozen=True)
class Graph:
    """Steps in the order of evaluation; every source is made by an earlier step."""

    image: Shape
    steps: tuple[Step, ...]

    def __post_init__(self) -> None:
        faults = structural_faults(INPUT, self.image, self.steps)
        if faults:
            raise InputError(join_faults(faults), where="program", remedy=REMEDY)

    @cached_property
    def shapes(self) -> dict[str, Shape]:
        shapes = {INPUT: self.image}
        for step in self.steps:
            shapes[step.name] = made_shape(step, shapes)
        return shapes

    @cached_property
    def ranges(self) -> dict[str, int]:
        """Bits w of each tensor that has a range, |x| < 2^(w-1)."""
        return stated_ranges(self.steps)

    @property
    def logits(self) -> Affine:
        last = self.steps[-1]
        assert isinstance(last, Linear | Combine)
        return last

    @property
    def linears(self) -> Iterator[Linear]:
        return (step for step in self.steps if isinstance(step, Linear))

    @property
    def affines(self) -> Iterator[Affine]:
        """Linear maps and sums: what may have a range."""
        return (step for step in self.steps if isinstance(step, Linear | Combine))

    @property
    def activations(self) -> Iterator[Activation]:
        return (step for step in self.steps if isinstance(step, Relu | Square | Truncate | Gate))

    @cached_property
    def origins(self) -> dict[str, frozenset[str]]:
        """Map each tensor to the linear maps that make it, directly or through public maps; an activation has none."""
        origins: dict[str, frozenset[str]] = {name: frozenset() for name in self.shapes}
        for step in self.steps:
            if isinstance(step, Linear):
                origins[step.name] = frozenset([step.name])
            elif isinstance(step, Pool | Combine):
                origins[step.name] = frozenset().union(*(origins[name] for name in step.sources))
        return origins

    @cached_property
    def links(self) -> frozenset[str]:
        """Linear maps that another one reads without a nonlinearity between: each is one more hop offline."""
        return frozenset().union(*(self.origins[name] for step in self.linears for name in step.sources))

    def is_crop(self, name: str) -> bool:
        """Return whether a tensor holds some elements of another as they are: a border that a fused map reads apart."""
        step = next((step for step in self.steps if step.name == name), None)
        if isinstance(step, Combine):
            return len(step.summands) == 1 and not step.constants and not step.factors
        return (
            isinstance(step, Pool)
            and all(last - first == 1 for first, last in (*step.row_windows, *step.column_windows))
            and {*step.row_factors, *step.column_factors} == {1}
        )

    @property
    def relu_count(self) -> int:
        return self._count(comparison=False)

    @property
    def comparison_count(self) -> int:
        """Comparisons of max pools; each costs what a ReLU costs."""
        return self._count(comparison=True)

    def _count(self, *, comparison: bool) -> int:
        relus = (step for step in self.steps if isinstance(step, Relu) and step.comparison == comparison)
        return sum(self.shapes[step.name].size for step in relus)

    @property
    def weight_shapes(self) -> dict[str, tuple[int, ...]]:
        """The name and shape of every tensor that the steps leave out: weights, constants and factors of sums."""
        shapes: dict[str, tuple[int, ...]] = {}
        for step in self.affines:
            if isinstance(step, Combine):
                if step.constants:
                    shapes[step.constants_name] = (step.shape.channels,)
                if step.factors:
                    shapes[step.factors_name] = (len(step.summands),)
                continue
            for number, term in enumerate(step.terms):
                inputs = self.shapes[term.source].channels
                shapes[step.weight_name(number)] = (step.shape.channels, inputs, term.kernel_height, term.kernel_width)
            shapes[step.bias_name] = tuple(step.shape)
        return shapes


@dataclass(frozen=True)
class Program(Graph):
    """A compiled network's public part: its steps, in integers modulo 2^`ring_bits`.

    >>> program: sphynx.Program = sphynx.Compiled.load("compiled/digits").program
    >>> program.relu_count, len(program.class_names)
    (512, 10)
    """

    ring_bits: int
    weight_bits: int
    class_names: tuple[str, ...] = ()
    name: str = ""
    picture_part: float = 1.0  # along either side, in the middle: what of a picture file the network is to be shown
    final: Final = ""  # what the network had behind its logits, for the client to apply; "" is taken as softmax

    def __post_init__(self) -> None:
        super().__post_init__()
        faults = [*range_faults(self.ring_bits, self.steps), *self._own_faults()]
        if faults:
            raise InputError(join_faults(faults), where=self.name or "program", remedy=REMEDY)

    def _own_faults(self) -> Iterator[str]:
        if not MIN_PICTURE_PART <= self.picture_part <= 1:
            yield f"the part of a picture is {self.picture_part}, outside {MIN_PICTURE_PART} .. 1"
        if self.logits.range_bits < 1:
            yield "the logits have no range"
        if self.class_names and len(self.class_names) != self.logits.shape.size:
            yield f"{len(self.class_names)} class names for {self.logits.shape.size} logits"

    @property
    def weight_shapes(self) -> dict[str, tuple[int, ...]]:
        """The name and shape of every secret tensor. A sum's constants and factors are in its step."""
        sums = [step for step in self.affines if isinstance(step, Combine)]
        public = {name for step in sums for name in (step.constants_name, step.factors_name)}
        return {name: shape for name, shape in super().weight_shapes.items() if name not in public}

    @property
    def format_version(self) -> int:
        """The oldest that has all of its steps: programs from before there was another keep their hash."""
        return FORMAT_VERSIONS[bool(self.final) or any(map(_is_new, self.steps))]

    def to_json(self) -> dict[str, Any]:
        return {
            "format": f"{FORMAT_NAME}/{self.format_version}",
            "name": self.name,
            "image": list(self.image),
            "class_names": list(self.class_names),
            "ring_bits": self.ring_bits,
            "weight_bits": self.weight_bits,
            "steps": [_step_json(step) for step in self.steps],
            # Left out where it is whole, so that programs from before there were parts keep their hash.
            **({"picture_part": self.picture_part} if self.picture_part != 1 else {}),
            **({"final": self.final} if self.final else {}),
        }

    @cached_property
    def content_hash(self) -> str:
        """The hash that bundles, sessions and weights are bound to."""
        text = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


_KIND_NAMES = {kind: name for name, kind in KINDS.items()}


def _is_new(step: Step) -> bool:
    """Return whether format 1 has no such step."""
    if isinstance(step, Linear):
        return any(term.groups > 1 for term in step.terms)
    return isinstance(step, Combine | Truncate | Gate) or (isinstance(step, Relu) and step.comparison)


def _step_json(step: Step) -> dict[str, Any]:
    """Without what format 1 does not have, where it says nothing."""
    data = {"kind": _KIND_NAMES[type(step)], **asdict(step)}
    if isinstance(step, Relu) and not step.comparison:
        del data["comparison"]
    if isinstance(step, Combine) and not step.factors:
        del data["factors"]
    for term in data.get("terms", ()):
        if term["groups"] == 1:
            del term["groups"]
    return data
