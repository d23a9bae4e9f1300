"""Small random programs with every kind of linear map: stride, dilation, shifted padding, two inputs, pools, links,
shifts, squares, a dense end. Ranges and truncations are measured on the images that the test asks about."""

from dataclasses import dataclass, replace

import numpy as np

from sphynx.program.convolve import Array
from sphynx.program.interpret import evaluate
from sphynx.program.ir import INPUT, Graph, Linear, Pool, Program, Relu, Square, Step, Term
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
            Term(source, self.draw(1, 3), self.draw(1, 4), self.draw(1, 2), self.draw(1, 2), self.draw(-1, 2),
                 self.draw(-1, 2), self.draw(0, 2))
            for source in sources
        )  # fmt: skip
        step = Linear(name, terms, out, 0, 0)
        self.add(step)
        if not is_link:
            self.steps[-1] = replace(step, range_bits=self.bits() + 1)

    def dense(self, name: str, source: str, classes: int) -> None:
        shape = self.shapes[source]
        self.add(Linear(name, (Term(source, shape.height, shape.width),), Shape(classes, 1, 1)))
        self.steps[-1] = replace(self.steps[-1], range_bits=self.bits() + 1)  # type: ignore[call-arg]

    def add(self, step: Linear) -> None:
        self.steps.append(step)
        self.shapes[step.name] = step.shape
        for key, shape in Graph(self.image, tuple(self.steps)).weight_shapes.items():
            if key not in self.weights:
                top = 2000 if key.endswith("/bias") else 127
                values = self.rng.integers(-top, top + 1, shape)
                self.weights[key] = values if key.endswith("/bias") else values.astype(np.int8)

    def bits(self) -> int:
        graph = Graph(self.image, tuple(self.steps))
        values = evaluate(graph, self.weights, self.pixels.astype(np.int64), lambda *_: None)
        return int(np.abs(values).max()).bit_length()

    def relu(self, name: str, source: str) -> None:
        self.shapes[name] = self.shapes[source]
        self.steps.append(Relu(name, source, max(0, self.bits() - ACTIVATION_BITS)))

    def square(self, name: str, source: str) -> None:
        """Of ten bits, to about as many as a ReLU keeps."""
        self.shapes[name] = self.shapes[source]
        before = max(0, self.bits() + 1 - 10)
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
    # A truncation before a square needs a bit beyond the range.
    widest = max(step.range_bits for step in make.steps if isinstance(step, Linear)) + with_square
    program = Program(make.image, tuple(make.steps), max(widest, 20, ring_bits or 0), 8, name=f"random {seed}")
    return Case(program, make.weights, make.pixels)
