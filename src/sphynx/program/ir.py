"""The program: what both parties compute, as integers between ReLUs. The artifact `program.json`, which is public.

    input (integers of a few bits) -> linear maps -> ReLU, truncation -> linear maps -> ... -> outputs

A step (steps.py) names the tensor it makes and the earlier tensors it reads. Only shapes, scales and widths are here;
the weights are the server's alone and lie elsewhere, under the names of `Program.weight_shapes`. A tensor's integers
stand for real numbers times 2^scale. What a client feeds and gets: inputs.py, outputs.py.

The same steps with real weights, no shifts and no truncation are the fused network before quantisation: a `Graph`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sphynx.errors import InputError, join_faults
from sphynx.program.convolve import Array
from sphynx.program.faults import range_faults, stated_ranges, structural_faults
from sphynx.program.inputs import PICTURE, Input
from sphynx.program.labels import label_faults
from sphynx.program.outputs import LOGITS, Final, Output, default_dims, output_faults, split_numbers
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
    Gate,
    Gather,
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
    "Gather",
    "Graph",
    "Input",
    "Linear",
    "Output",
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

FORMAT_NAME, FORMAT_VERSION = "sphynx-program", 3
INPUT = "pixels"  # the tensor that a client feeds, whatever it holds

REMEDY = "Compile the network again: sphynx compile RUN -o DIR."


@dataclass(frozen=True)
class Graph:
    """Steps in the order of evaluation; every source is made by an earlier step.

    `image` is the input's shape. Unless outputs are named, the last step's tensor is the only one.
    """

    image: Shape
    steps: tuple[Step, ...]
    outputs: tuple[Output, ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        outputs = self.outputs or tuple(Output(LOGITS, step.name) for step in self.steps[-1:])
        faults = structural_faults(INPUT, self.image, self.steps) or list(output_faults(outputs, self.shapes))
        if faults:
            raise InputError(join_faults(faults), where="program", remedy=REMEDY)
        laid_out = (replace(output, dims=output.dims or default_dims(self.shapes[output.source])) for output in outputs)
        object.__setattr__(self, "outputs", tuple(laid_out))

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

    @cached_property
    def output_names(self) -> tuple[str, ...]:
        """The tensors that are outputs, each once, in the order of the outputs."""
        return tuple(dict.fromkeys(output.source for output in self.outputs))

    @property
    def output_size(self) -> int:
        """Numbers of all outputs together."""
        return sum(self.shapes[output.source].size for output in self.outputs)

    def split(self, numbers: Array) -> dict[str, Array]:
        """Lay out [n, numbers of all outputs] by output, [n, *dims]."""
        return split_numbers(self.outputs, self.shapes, numbers)

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
            elif isinstance(step, PublicMap):
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
    input: Input = PICTURE
    name: str = ""
    made_from: str = ""  # the kind and the name of what was compiled: "onnx detector.onnx"

    def __post_init__(self) -> None:
        super().__post_init__()
        faults = [*range_faults(self.ring_bits, self.steps), *self._own_faults()]
        if faults:
            raise InputError(join_faults(faults), where=self.name or "program", remedy=REMEDY)

    def _own_faults(self) -> Iterator[str]:
        yield from self.input.faults_for(self.image)
        if self.input.bits > self.ring_bits:
            yield f"an input of {self.input.bits} bits does not fit a ring of {self.ring_bits} bits"
        affine = {step.name for step in self.affines}
        for output in self.outputs:
            if output.source not in affine or output.source not in self.ranges:
                yield f"the output {output.name} is not a linear map or a sum that has a range"
            elif output.reveals == "label":
                yield from label_faults(self.outputs, output, self.shapes, self.ranges)

    @cached_property
    def scales(self) -> dict[str, int]:
        """The scale of each output, by its name."""
        scales = {step.name: step.scale for step in self.affines}
        return {output.name: scales[output.source] for output in self.outputs}

    def real_numbers(self, integers: Array) -> NDArray[np.float64]:
        """Give the real numbers that the integers of all outputs stand for, [n, numbers] each."""
        sizes = [self.shapes[output.source].size for output in self.outputs]
        scales = np.repeat([self.scales[output.name] for output in self.outputs], sizes)
        found: NDArray[np.float64] = np.ldexp(integers.astype(np.float64), -scales)
        return found

    def answers(self, numbers: Array) -> dict[str, NDArray[np.float64]]:
        """Lay the outputs' real numbers out as the network does, its own functions applied: [n, *dims] by name."""
        laid_out = self.split(numbers)
        return {output.name: output.finished(laid_out[output.name]) for output in self.outputs}

    @cached_property
    def classes(self) -> Output | None:
        """The output whose elements are scores of classes: the first one; None where there is none."""
        return next((output for output in self.outputs if output.has_classes), None)

    @property
    def reveals_label(self) -> bool:
        """Return whether a client gets a label in place of numbers."""
        return any(output.reveals == "label" for output in self.outputs)

    @property
    def class_names(self) -> tuple[str, ...]:
        return self.classes.class_names if self.classes else ()

    @property
    def weight_shapes(self) -> dict[str, tuple[int, ...]]:
        """The name and shape of every secret tensor. A sum's constants and factors are in its step."""
        sums = [step for step in self.affines if isinstance(step, Combine)]
        public = {name for step in sums for name in (step.constants_name, step.factors_name)}
        return {name: shape for name, shape in super().weight_shapes.items() if name not in public}

    def to_json(self) -> dict[str, Any]:
        return {
            "format": f"{FORMAT_NAME}/{FORMAT_VERSION}",
            "name": self.name,
            "made_from": self.made_from,
            "image": list(self.image),
            "input": asdict(self.input),
            "outputs": [_output_json(output) for output in self.outputs],
            "ring_bits": self.ring_bits,
            "weight_bits": self.weight_bits,
            "steps": [_step_json(step) for step in self.steps],
        }

    @cached_property
    def content_hash(self) -> str:
        """The hash that bundles, sessions and weights are bound to."""
        text = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


_KIND_NAMES = {kind: name for name, kind in KINDS.items()}


def _output_json(output: Output) -> dict[str, Any]:
    data = asdict(output)
    if output.reveals != "label":
        del data["margin"]
    return data


def _step_json(step: Step) -> dict[str, Any]:
    """Leave out what most steps do not have."""
    data = {"kind": _KIND_NAMES[type(step)], **asdict(step)}
    if isinstance(step, Relu) and not step.comparison:
        del data["comparison"]
    if isinstance(step, Combine) and not step.factors:
        del data["factors"]
    for term in data.get("terms", ()):
        if term["groups"] == 1:
            del term["groups"]
    return data
