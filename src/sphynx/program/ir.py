"""The program: what both parties compute, as integers between ReLUs. The artifact `program.json`, which is public.

    pixels (uint8) -> linear maps -> ReLU, truncation -> linear maps -> ... -> logits

A step names the tensor it makes and the earlier tensors it reads. Only shapes, scales and widths are here; the weights
are the server's and lie elsewhere, under the names of `Program.weight_shapes`. A tensor's integers stand for real
numbers times 2^scale. The last step makes the logits.

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
from sphynx.space.tally import Shape

FORMAT_NAME, FORMAT_VERSION = "sphynx-program", 1
INPUT = "pixels"
MAX_RING_BITS = 64
# Of either sign: any integer of the widest ring is a finite double then, and so is the difference of two. The compiler
# computes in doubles, and refuses networks that would need more.
MAX_SCALE = 1022 - (MAX_RING_BITS - 1)
MAX_EXTENT = 1 << 16  # of kernels, strides, paddings, factors
MAX_TENSOR_SIZE = 1 << 28  # elements; a file that asks for more is not one of ours
MIN_PICTURE_PART = 0.5  # a client makes the whole picture that large before it cuts

REMEDY = "Compile the network again: sphynx compile RUN -o DIR."


@dataclass(frozen=True)
class Term:
    """One convolution: output row y reads rows stride * y - pad_top + dilation * ky of its source, zero outside it."""

    source: str
    kernel_height: int
    kernel_width: int
    stride: int = 1
    dilation: int = 1
    pad_top: int = 0  # negative: the first rows are not read
    pad_left: int = 0
    shift: int = 0  # its sum is multiplied by 2^shift, so that parallel terms have one scale
    weight_scale: int = 0

    def faults(self) -> list[str]:
        extents = (self.kernel_height, self.kernel_width, self.stride, self.dilation)
        fits = all(1 <= extent <= MAX_EXTENT for extent in extents)
        faults = [] if fits else [f"kernel, stride and dilation must be between 1 and {MAX_EXTENT}"]
        if max(abs(self.pad_top), abs(self.pad_left)) > MAX_EXTENT:
            faults.append(f"a padding is beyond {MAX_EXTENT}")
        if not 0 <= self.shift < MAX_RING_BITS:
            faults.append(f"shift {self.shift} is outside 0 .. {MAX_RING_BITS - 1}")
        if abs(self.weight_scale) > MAX_SCALE:
            faults.append(f"weight_scale {self.weight_scale} is beyond {MAX_SCALE}")
        return faults


@dataclass(frozen=True)
class Linear:
    """The sum of its terms and a bias map (one number per output element).

    `range_bits` (w in the protocol's formulas) says that |x| < 2^(w-1); it is set where a ReLU, a square or the user
    reads the tensor. Where it is 0 the tensor only feeds further linear maps, and may wrap around the ring unharmed.
    """

    name: str
    terms: tuple[Term, ...]
    shape: Shape
    scale: int = 0
    range_bits: int = 0

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(term.source for term in self.terms)

    def weight_name(self, number: int) -> str:
        return f"{self.name}/{number}"

    @property
    def bias_name(self) -> str:
        return f"{self.name}/bias"


@dataclass(frozen=True)
class Pool:
    """A public map, applied by each party to its own share: the sum over a window of rows and columns, times factors.

    The factors make windows that the border cuts weigh as much as whole ones (9, 6, 4 for a 3x3 average); the common
    divisor is in the weights of the maps that read the tensor.
    """

    name: str
    source: str
    row_windows: tuple[tuple[int, int], ...]  # first row, row after the last
    row_factors: tuple[int, ...]
    column_windows: tuple[tuple[int, int], ...]
    column_factors: tuple[int, ...]

    @property
    def sources(self) -> tuple[str, ...]:
        return (self.source,)


@dataclass(frozen=True)
class Relu:
    """max(x, 0) / 2^truncate, rounded down."""

    name: str
    source: str
    truncate: int = 0

    @property
    def sources(self) -> tuple[str, ...]:
        return (self.source,)


@dataclass(frozen=True)
class Square:
    """(x / 2^truncate_before)^2 / 2^truncate_after, both rounded down: a quadratic activation's nonlinear part."""

    name: str
    source: str
    truncate_before: int = 0
    truncate_after: int = 0

    @property
    def sources(self) -> tuple[str, ...]:
        return (self.source,)


Step = Linear | Pool | Relu | Square
KINDS: dict[str, type[Step]] = {"linear": Linear, "pool": Pool, "relu": Relu, "square": Square}


@dataclass(frozen=True)
class Graph:
    """Steps in the order of evaluation; every source is made by an earlier step."""

    image: Shape
    steps: tuple[Step, ...]

    def __post_init__(self) -> None:
        faults = _structural_faults(self)
        if faults:
            raise InputError(join_faults(faults), where="program", remedy=REMEDY)

    @cached_property
    def shapes(self) -> dict[str, Shape]:
        shapes = {INPUT: self.image}
        for step in self.steps:
            if isinstance(step, Linear):
                shapes[step.name] = step.shape
            elif isinstance(step, Pool):
                channels = shapes[step.source].channels
                shapes[step.name] = Shape(channels, len(step.row_windows), len(step.column_windows))
            else:
                shapes[step.name] = shapes[step.source]
        return shapes

    @property
    def logits(self) -> Linear:
        last = self.steps[-1]
        assert isinstance(last, Linear)
        return last

    @property
    def linears(self) -> Iterator[Linear]:
        return (step for step in self.steps if isinstance(step, Linear))

    def is_crop(self, name: str) -> bool:
        """Whether it holds some elements of another tensor as they are: a border that a fused map reads apart."""
        step = next((step for step in self.steps if step.name == name), None)
        return (
            isinstance(step, Pool)
            and all(last - first == 1 for first, last in (*step.row_windows, *step.column_windows))
            and {*step.row_factors, *step.column_factors} == {1}
        )

    @property
    def relu_count(self) -> int:
        return sum(self.shapes[step.name].size for step in self.steps if isinstance(step, Relu))

    @property
    def weight_shapes(self) -> dict[str, tuple[int, ...]]:
        """The name and shape of every secret tensor."""
        shapes: dict[str, tuple[int, ...]] = {}
        for step in self.linears:
            for number, term in enumerate(step.terms):
                inputs = self.shapes[term.source].channels
                shapes[step.weight_name(number)] = (step.shape.channels, inputs, term.kernel_height, term.kernel_width)
            shapes[step.bias_name] = tuple(step.shape)
        return shapes


@dataclass(frozen=True)
class Program(Graph):
    ring_bits: int
    weight_bits: int
    class_names: tuple[str, ...] = ()
    name: str = ""
    picture_part: float = 1.0  # along either side, in the middle: what of a picture file the network is to be shown

    def __post_init__(self) -> None:
        super().__post_init__()
        faults = _range_faults(self)
        if faults:
            raise InputError(join_faults(faults), where=self.name or "program", remedy=REMEDY)

    def to_json(self) -> dict[str, Any]:
        kinds = {kind: name for name, kind in KINDS.items()}
        return {
            "format": f"{FORMAT_NAME}/{FORMAT_VERSION}",
            "name": self.name,
            "image": list(self.image),
            "class_names": list(self.class_names),
            "ring_bits": self.ring_bits,
            "weight_bits": self.weight_bits,
            "steps": [{"kind": kinds[type(step)], **asdict(step)} for step in self.steps],
            # Left out where it is whole, so that programs from before there were parts keep their hash.
            **({"picture_part": self.picture_part} if self.picture_part != 1 else {}),
        }

    @cached_property
    def content_hash(self) -> str:
        """What bundles, sessions and weights are bound to."""
        text = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


def _structural_faults(graph: Graph) -> list[str]:
    """The first thing that keeps the steps from being evaluated: nothing after it could be judged."""
    if min(graph.image) < 1 or graph.image.size > MAX_TENSOR_SIZE:
        return [f"there is no image of {graph.image}"]
    if not graph.steps or not isinstance(graph.steps[-1], Linear):
        return ["the last step is not a linear map that gives the logits"]
    shapes = {INPUT: graph.image}
    for step in graph.steps:
        faults = [f"{step.name}: there is no earlier tensor {name!r}" for name in step.sources if name not in shapes]
        if step.name in shapes or not step.name:
            faults.append(f"{step.name!r}: the name is taken or empty")
        if faults:
            return faults
        if isinstance(step, Linear):
            faults = [] if step.terms else [f"{step.name}: it has no term"]
            for term in step.terms:
                kernel = Shape(shapes[term.source].channels, term.kernel_height, term.kernel_width)
                if step.shape.channels * kernel.size > MAX_TENSOR_SIZE:
                    faults.append(f"{step.name}: a kernel of {kernel} is too large")
            shapes[step.name] = step.shape
        elif isinstance(step, Pool):
            source = shapes[step.source]
            faults = _window_faults(step, "row", step.row_windows, step.row_factors, source.height)
            faults += _window_faults(step, "column", step.column_windows, step.column_factors, source.width)
            shapes[step.name] = Shape(source.channels, len(step.row_windows), len(step.column_windows))
        else:
            shapes[step.name] = shapes[step.source]
        if min(shapes[step.name]) < 1 or shapes[step.name].size > MAX_TENSOR_SIZE:
            faults.append(f"{step.name}: there is no tensor of {shapes[step.name]}")
        if faults:
            return faults
    return []


def _window_faults(
    step: Pool, axis: str, windows: tuple[tuple[int, int], ...], factors: tuple[int, ...], length: int
) -> list[str]:
    if len(windows) != len(factors):
        return [f"{step.name}: {len(windows)} {axis} windows, {len(factors)} factors"]
    if any(not 0 <= first < last <= length for first, last in windows):
        return [f"{step.name}: a {axis} window is empty or outside its source"]
    fits = all(1 <= factor <= MAX_EXTENT for factor in factors)
    return [] if fits else [f"{step.name}: a {axis} factor is outside 1 .. {MAX_EXTENT}"]


def _range_faults(program: Program) -> list[str]:
    faults = []
    if not 1 <= program.ring_bits <= MAX_RING_BITS:
        faults.append(f"the ring width is {program.ring_bits}, outside 1 .. {MAX_RING_BITS}")
    if not MIN_PICTURE_PART <= program.picture_part <= 1:
        faults.append(f"the part of a picture is {program.picture_part}, outside {MIN_PICTURE_PART} .. 1")
    linears = {step.name: step for step in program.linears}
    for step in program.steps:
        if isinstance(step, Relu | Square):
            source = linears.get(step.source)
            truncations = (step.truncate,) if isinstance(step, Relu) else (step.truncate_before, step.truncate_after)
            if source is None or source.range_bits < 1:
                faults.append(f"{step.name}: it reads {step.source}, which has no range")
            elif isinstance(step, Relu) and not 0 <= step.truncate < source.range_bits:
                faults.append(f"{step.name}: it truncates {step.truncate} of {source.range_bits} bits")
            elif min(truncations) < 0:
                faults.append(f"{step.name}: it truncates a negative number of bits")
        elif isinstance(step, Linear) and abs(step.scale) > MAX_SCALE:
            faults.append(f"{step.name}: its scale of {step.scale} is beyond {MAX_SCALE}")
        elif isinstance(step, Linear) and not 0 <= step.range_bits <= program.ring_bits:
            faults.append(
                f"{step.name}: its range of {step.range_bits} bits does not fit the ring of {program.ring_bits} bits"
            )
    if program.logits.range_bits < 1:
        faults.append("the logits have no range")
    if program.class_names and len(program.class_names) != program.logits.shape.size:
        faults.append(f"{len(program.class_names)} class names for {program.logits.shape.size} logits")
    return faults
