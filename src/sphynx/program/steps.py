"""The steps of a program: what each makes of earlier tensors. Public: shapes, scales and widths, never a weight.

    linear     secret weights: a sum of convolutions and a bias map             offline a reply, online nothing
    pool       public: sums over windows                                        nothing
    combine    public: signed, shifted, weighted sums of (parts of) tensors     nothing
    gather     public: single elements of a tensor, in any order                nothing
    relu       max(x, 0), truncated; also the comparisons of a max pool         a layer of the ReLU backend
    truncate   signed floor of x / 2^f                                          a layer of carries
    square     (x / 2^f)^2 / 2^g                                                a layer of products
    gate       a map times one number for each of its channels                  a layer of products

A graph of real numbers may also have curves, smooth functions that are approximated before it becomes a program.
"""

from __future__ import annotations

from dataclasses import dataclass

from sphynx.space.tally import Shape

MAX_RING_BITS = 64
# Of either sign: any integer of the widest ring is a finite double then, and so is the difference of two. The compiler
# computes in doubles, and refuses networks that would need more.
MAX_SCALE = 1022 - (MAX_RING_BITS - 1)
MAX_EXTENT = 1 << 16  # of kernels, strides, paddings, factors
MAX_TENSOR_SIZE = 1 << 28  # elements; a file that asks for more is not one of ours
NOTHING = -1  # in an index of a summand or a gather: this position of the output gets nothing from it


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
    groups: int = 1  # of channels: a weight between channels of two groups is zero, publicly

    def faults(self) -> list[str]:
        extents = (self.kernel_height, self.kernel_width, self.stride, self.dilation, self.groups)
        fits = all(1 <= extent <= MAX_EXTENT for extent in extents)
        faults = [] if fits else [f"kernel, stride, dilation and groups must be between 1 and {MAX_EXTENT}"]
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
class Summand:
    """A tensor, or some of its elements in any order, times 2^shift, added or taken away.

    Output (c, y, x) gets element (channels[c], rows[y], columns[x]) of the source, or nothing where an index is
    `NOTHING`. An empty index stands for the whole axis as it is.
    """

    source: str
    channels: tuple[int, ...] = ()
    rows: tuple[int, ...] = ()
    columns: tuple[int, ...] = ()
    shift: int = 0
    negative: bool = False

    def faults(self) -> list[str]:
        fits = 0 <= self.shift < MAX_RING_BITS
        return [] if fits else [f"shift {self.shift} is outside 0 .. {MAX_RING_BITS - 1}"]

    @property
    def indices(self) -> tuple[tuple[int, ...], ...]:
        return self.channels, self.rows, self.columns


@dataclass(frozen=True)
class Combine:
    """A public map, applied by each party to its own share: the sum of its summands, and of constants.

    `range_bits` is set where a nonlinearity or the user reads the tensor, as in `Linear`. `constants` are one number
    for each channel, which the server adds to its share; `factors` are one for each summand, which is multiplied by it;
    empty where there are none. In a graph of real numbers both are zeros here, and the numbers lie among the weights.
    """

    name: str
    summands: tuple[Summand, ...]
    shape: Shape
    scale: int = 0
    range_bits: int = 0
    constants: tuple[int, ...] = ()
    factors: tuple[int, ...] = ()

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(summand.source for summand in self.summands)

    @property
    def constants_name(self) -> str:
        return f"{self.name}/constants"

    @property
    def factors_name(self) -> str:
        return f"{self.name}/factors"

    @property
    def integer_factors(self) -> tuple[int, ...]:
        """Factors of all summands, their signs and shifts included."""
        factors = self.factors or (1,) * len(self.summands)
        signed = (
            (-factor if s.negative else factor, s.shift) for s, factor in zip(self.summands, factors, strict=True)
        )
        return tuple(factor << shift for factor, shift in signed)


@dataclass(frozen=True)
class Gather:
    """A public map, applied by each party to its own share: single elements of a tensor, in any order.

    Element i of the output, in the order channels, rows, columns, is element indices[i] of the source, or zero where
    that is `NOTHING`. A `Summand` does the same to whole rows, columns and channels in far fewer numbers.
    """

    name: str
    source: str
    shape: Shape
    indices: tuple[int, ...]

    @property
    def sources(self) -> tuple[str, ...]:
        return (self.source,)


@dataclass(frozen=True)
class Truncate:
    """x / 2^truncate, rounded down, of either sign."""

    name: str
    source: str
    truncate: int

    @property
    def sources(self) -> tuple[str, ...]:
        return (self.source,)


@dataclass(frozen=True)
class Relu:
    """max(x, 0) / 2^truncate, rounded down.

    A `comparison` is one of a max pool, max(a, b) = b + max(a - b, 0): it costs what a ReLU costs and is counted apart.
    """

    name: str
    source: str
    truncate: int = 0
    comparison: bool = False

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


@dataclass(frozen=True)
class Gate:
    """x times g, which has one element for each channel of x: what squeeze and excitation does with a map."""

    name: str
    source: str
    gate: str

    @property
    def sources(self) -> tuple[str, ...]:
        return (self.source, self.gate)


@dataclass(frozen=True)
class Curve:
    """A smooth function of each element, by its name in curves.py. Of real numbers only: no program has one."""

    name: str
    source: str
    function: str

    @property
    def sources(self) -> tuple[str, ...]:
        return (self.source,)


PublicMap = Pool | Combine | Gather  # either party applies it to its own share
Affine = Linear | Combine  # what has a scale, and a range where a nonlinearity or the user reads it
Compared = Relu | Square | Truncate  # what reads a tensor that has a range
Activation = Compared | Gate  # what takes messages
Step = Linear | Pool | Combine | Gather | Relu | Square | Truncate | Gate | Curve
KINDS: dict[str, type[Step]] = {
    "linear": Linear,
    "pool": Pool,
    "relu": Relu,
    "square": Square,
    "combine": Combine,
    "gather": Gather,
    "truncate": Truncate,
    "gate": Gate,
}


def made_shape(step: Step, shapes: dict[str, Shape]) -> Shape:
    """Work out the shape of the tensor that a step makes, from those of its sources."""
    if isinstance(step, Linear | Combine | Gather):
        return step.shape
    source = shapes[step.source]
    if isinstance(step, Pool):
        return Shape(source.channels, len(step.row_windows), len(step.column_windows))
    return source
