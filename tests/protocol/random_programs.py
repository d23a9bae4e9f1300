"""Small random programs with every kind of linear map: stride, dilation, shifted padding, two inputs, pools, links,
shifts, squares, public sums with slices, permutations and signs, signed truncations, a max pool's comparison, gates, a
dense end. Ranges and truncations are measured on the images that the test asks about."""

from dataclasses import dataclass, replace

import numpy as np

from sphynx.program.convolve import Array
from sphynx.program.interpret import evaluate
from sphynx.program.ir import (
    INPUT,
    NOTHING,
    Combine,
    Gate,
    Gather,
    Graph,
    Linear,
    Output,
    Pool,
    Program,
    Relu,
    Square,
    Step,
    Summand,
    Term,
    Truncate,
)
from sphynx.space.tally import Shape

ACTIVATION_BITS = 7


@dataclass(frozen=True, eq=False)
class Case:
    program: Program
    weights: dict[str, Array]
    pixels: Array


class _Builder:
    def __init__(self, seed: int, images: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.image = Shape(self.draw(1, 3), self.draw(4, 7), self.draw(4, 7))
        self.pixels = self.rng.integers(0, 256, (images, *self.image)).astype(np.uint8)
        self.steps: list[Step] = []
        self.weights: dict[str, Array] = {}
        self.shapes: dict[str, Shape] = {}

    def draw(self, least: int, most: int) -> int:
        return int(self.rng.integers(least, most + 1))

    def linear(self, name: str, sources: list[str], out: Shape, *, is_link: bool = False) -> None:
        """Any term gives any output size: what it reads beyond its source is zero."""
        terms = tuple(
            Term(
                source,
                self.draw(1, 3),
                self.draw(1, 4),
                self.draw(1, 2),
                self.draw(1, 2),
                self.draw(-1, 2),
                self.draw(-1, 2),
                self.draw(0, 2),
            )
            for source in sources
        )
        step = Linear(name, terms, out, 0, 0)
        self.add(step)
        if not is_link:
            self.steps[-1] = replace(step, range_bits=self.bits() + 1)

    def dense(self, name: str, source: str, classes: int) -> None:
        shape = self.shapes[source]
        self.add(Linear(name, (Term(source, shape.height, shape.width),), Shape(classes, 1, 1)))
        self.set_range(self.bits() + 1)

    def grouped(self, name: str, source: str, groups: int) -> None:
        """Weights between two groups are zero."""
        shape = self.shapes[source]
        out = Shape(groups * self.draw(1, 2), shape.height, shape.width)
        self.add(Linear(name, (Term(source, 3, 3, pad_top=1, pad_left=1, groups=groups),), out))
        outputs, inputs = (np.arange(n) // (n // groups) for n in (out.channels, shape.channels))
        self.weights[f"{name}/0"] *= (outputs[:, None] == inputs)[:, :, None, None]
        self.set_range(self.bits() + 1)

    def add(self, step: Linear) -> None:
        self.steps.append(step)
        self.shapes[step.name] = step.shape
        for key, shape in Graph(self.image, tuple(self.steps)).weight_shapes.items():
            if key not in self.weights:
                top = 2000 if key.endswith("/bias") else 127
                values = self.rng.integers(-top, top + 1, shape)
                self.weights[key] = values if key.endswith("/bias") else values.astype(np.int8)

    def combine(self, name: str, sources: list[str], out: Shape, *, is_ranged: bool = True) -> None:
        """Any elements of each source, in any order; constants, factors."""
        summands = tuple(self.summand(source, out) for source in sources)
        constants = tuple(self.rng.integers(-500, 500, out.channels).tolist()) if self.draw(0, 1) else ()
        self.shapes[name] = out
        factors = tuple(self.rng.integers(-5, 6, len(sources)).tolist()) if self.draw(0, 1) else ()
        self.steps.append(Combine(name, summands, out, 0, 0, constants, factors))
        if is_ranged:  # a sum whose factors are all zero has a bit to truncate, too
            self.set_range(max(2, self.bits() + 1))

    def summand(self, source: str, out: Shape) -> Summand:
        channels, rows, columns = map(self.index, self.shapes[source], out)
        return Summand(source, channels, rows, columns, self.draw(0, 2), bool(self.draw(0, 1)))

    def set_range(self, bits: int) -> None:
        """Set the range of the latest step."""
        step = self.steps[-1]
        assert isinstance(step, Linear | Combine)
        self.steps[-1] = replace(step, range_bits=bits)

    def index(self, length: int, outputs: int) -> tuple[int, ...]:
        kind = self.draw(0, 3)
        if kind == 0 and length == outputs:
            return ()
        if kind == 1 and length >= 2 * outputs:
            return tuple(range(0, 2 * outputs, 2))
        if kind == 2:
            return tuple(at if at < length else NOTHING for at in range(outputs))
        return tuple(self.rng.integers(NOTHING, length, outputs).tolist())

    def truncate(self, name: str, source: str) -> None:
        self.shapes[name] = self.shapes[source]
        self.steps.append(Truncate(name, source, max(1, self.bits(source) - ACTIVATION_BITS)))

    def gate(self, name: str, source: str, gates: str) -> None:
        """The map times some elements of another one, which are never all zero; truncated."""
        shape = self.shapes[source]
        out = Shape(shape.channels, 1, 1)
        index = tuple(self.rng.integers(0, self.shapes[gates].channels, out.channels).tolist())
        taken = Summand(gates, index, (0,), (0,))
        self.steps.append(Combine(f"{name}/gates", (taken,), out, constants=(99,) * out.channels))
        self.steps.append(Gate(name, source, f"{name}/gates"))
        self.shapes[name] = self.shapes[f"{name}/copy"] = shape
        self.steps.append(Combine(f"{name}/copy", (Summand(name),), shape))
        self.set_range(max(self.bits(), 3) + 1)
        self.truncate(f"{name}/floor", f"{name}/copy")

    def gather(self, name: str, source: str, out: Shape) -> None:
        """Any elements, some of them several times, some places left empty."""
        self.shapes[name] = out
        indices = self.rng.integers(NOTHING, self.shapes[source].size, out.size)
        self.steps.append(Gather(name, source, out, tuple(indices.tolist())))

    def maximum(self, name: str, source: str) -> None:
        """Take the maximum of neighbouring columns: b + ReLU(a - b)."""
        shape = self.shapes[source]
        out = Shape(shape.channels, shape.height, shape.width - 1)
        left, right = tuple(range(out.width)), tuple(range(1, shape.width))
        difference = (Summand(source, columns=left), Summand(source, columns=right, negative=True))
        self.shapes[f"{name}/difference"] = self.shapes[f"{name}/comparison"] = self.shapes[name] = out
        self.steps.append(Combine(f"{name}/difference", difference, out))
        self.set_range(self.bits() + 1)
        self.steps.append(Relu(f"{name}/comparison", f"{name}/difference", comparison=True))
        self.steps.append(Combine(name, (Summand(source, columns=right), Summand(f"{name}/comparison")), out))
        self.set_range(self.bits() + 1)

    def bits(self, name: str = "") -> int:
        """Bits of the latest tensor, or of this one."""
        name = name or self.steps[-1].name
        probe = Combine("probe", (Summand(name),), self.shapes[name])
        graph = Graph(self.image, (*self.steps, probe))
        values = evaluate(graph, self.weights, self.pixels.astype(np.int64), lambda *_: None)
        return int(np.abs(values).max()).bit_length()

    def relu(self, name: str, source: str) -> None:
        self.shapes[name] = self.shapes[source]
        self.steps.append(Relu(name, source, max(0, self.bits(source) - ACTIVATION_BITS)))

    def square(self, name: str, source: str) -> None:
        """Square ten bits, to about as many as a ReLU keeps."""
        self.shapes[name] = self.shapes[source]
        before = max(0, self.bits(source) + 1 - 10)
        self.steps.append(Square(name, source, before, 20 - 2 - ACTIVATION_BITS))

    def pool(self, name: str, source: str) -> None:
        shape = self.shapes[name] = self.shapes[source]
        rows, columns = (tuple((max(0, i - 1), min(n, i + 2)) for i in range(n)) for n in (shape.height, shape.width))
        factors = [tuple(3 if b - a == 2 else 2 for a, b in windows) for windows in (rows, columns)]
        self.steps.append(Pool(name, source, rows, factors[0], columns, factors[1]))


def random_case(seed: int, images: int = 1, ring_bits: int | None = None, *, with_square: bool = False) -> Case:
    """The ring is as wide as the widest range, or wider if asked."""
    make = _Builder(seed, images)
    first = Shape(make.draw(1, 4), make.draw(3, 6), make.draw(3, 6))
    make.linear("first", [INPUT], first)
    make.relu("first/relu", "first")
    make.linear("link", [INPUT, "first/relu"], Shape(make.draw(1, 3), *first[1:]), is_link=True)
    make.pool("pool", "first/relu")
    make.pool("link/pool", "link")
    second = Shape(make.draw(1, 5), make.draw(2, 4), make.draw(2, 4))
    make.linear("second", ["pool", "link/pool"], second)
    make.relu("second/relu", "second")
    make.linear("third", ["first/relu", "second/relu", "first/relu"], second)
    activate = make.square if with_square else make.relu
    activate("third/activation", "third")
    make.dense("logits", "third/activation", make.draw(2, 12))
    return _case(make, f"random {seed}", ring_bits, spare=with_square)


def random_public_case(seed: int, images: int = 1, *, with_square: bool = False, with_gate: bool = True) -> Case:
    """Sums, truncations, activations that read either, a chain through a sum, single elements gathered, three outputs:
    a sum, a map that is read further, and gathered elements."""
    make = _Builder(seed, images)
    make.shapes[INPUT] = make.image
    first = Shape(make.draw(1, 3), make.draw(3, 5), make.draw(3, 5))
    make.linear("first", [INPUT], first)
    make.maximum("max", "first")
    make.relu("max/relu", "max")
    make.linear("long", ["max/relu"], first, is_link=True)
    make.combine("residual", ["long", "max/relu", INPUT], first)
    make.relu("residual/relu", "residual")
    make.truncate("residual/floor", "residual")
    activate = make.square if with_square else make.relu
    make.linear("second", ["residual/relu", "residual/floor"], Shape(make.draw(1, 3), 3, 3))
    make.truncate("second/floor", "second")
    activate("second/activation", "second/floor")
    make.combine("doubled", ["residual/relu"] * 2, Shape(2 * make.draw(1, 3), *first[1:]), is_ranged=False)
    make.grouped("groups", "doubled", 2)
    make.relu("groups/relu", "groups")
    if with_gate:
        make.gate("product", "residual/floor", "second/activation")
    make.combine("chain", ["long", "second/activation"], Shape(2, 3, 2), is_ranged=False)
    make.pool("chain/pool", "chain")
    classes = make.draw(2, 9)
    make.dense("dense", "chain/pool", classes)
    make.dense("other", "second/activation", classes)
    make.dense("third", "groups/relu", classes)
    make.dense("gated", "product/floor" if with_gate else "residual/floor", classes)
    make.gather("gathered", "residual/floor", Shape(make.draw(1, 3), 2, make.draw(1, 3)))
    make.combine("elements", ["gathered"], make.shapes["gathered"])
    make.combine("logits", ["dense", "other", "third", "gated"], Shape(classes, 1, 1))
    outputs = tuple(Output(name, name) for name in ("logits", "second", "elements"))
    return _case(make, f"random public {seed}", None, spare=True, outputs=outputs)


def _case(make: _Builder, name: str, ring_bits: int | None, *, spare: bool, outputs: tuple[Output, ...] = ()) -> Case:
    # A signed truncation, also the one before a square, needs a bit beyond the range.
    widest = max(step.range_bits for step in make.steps if isinstance(step, Linear | Combine)) + spare
    program = Program(make.image, tuple(make.steps), max(widest, 20, ring_bits or 0), 8, name=name, outputs=outputs)
    return Case(program, make.weights, make.pixels)
