"""Small programs by hand with every kind of step, random weights, and their slowest evaluation."""

from itertools import product

import numpy as np

from sphynx.program.convolve import Array
from sphynx.program.ir import (
    INPUT,
    Combine,
    Gate,
    Gather,
    Input,
    Linear,
    Output,
    Pool,
    Program,
    Relu,
    Square,
    Summand,
    Term,
    Truncate,
)
from sphynx.space.tally import Shape

FOUR_CLASSES = (Output("logits", "logits", class_names=("a", "b", "c", "d")),)
CUT = ((0, 2), (0, 3), (1, 4), (2, 5), (3, 5))


def small_program(**changes: int) -> Program:
    steps = (
        Linear("first", (Term(INPUT, 3, 2, 1, 1, 1, 0),), Shape(3, 5, 5), 4, 20),
        Relu("relu", "first", 3),
        Pool("pool", "relu", CUT, (3, 2, 2, 2, 3), CUT, (3, 2, 2, 2, 3)),
        Linear("link", (Term("relu", 2, 2, 2, 1, 0, -1, 1),), Shape(2, 3, 2), 0, 0),
        Linear("second", (Term("pool", 3, 3, 2, 2, 1, 2), Term("link", 1, 1, shift=2)), Shape(2, 3, 2), 0, 31),
        Square("square", "second", 9, 4),
        Linear("logits", (Term("square", 3, 2), Term("link", 3, 2, shift=1)), Shape(4, 1, 1), 0, 36),
    )
    values = {"ring_bits": 36, "weight_bits": 8, **changes}
    return Program(Shape(2, 5, 5), steps, outputs=FOUR_CLASSES, name="small", **values)  # type: ignore[arg-type]


def public_program(**changes: int) -> Program:
    """A max pool over pairs of columns, a residual sum, a signed truncation, a permutation."""
    pairs, single = Shape(3, 5, 2), Shape(3, 5, 5)
    left = Summand("first", columns=(0, 2))
    right = Summand("first", columns=(1, 3))
    steps = (
        Linear("first", (Term(INPUT, 3, 2, 1, 1, 1, 0),), single, 4),
        Combine("difference", (left, Summand("first", columns=(1, 3), negative=True)), pairs, 4, 20),
        Relu("comparison", "difference", comparison=True),
        Combine("max", (right, Summand("comparison")), pairs, 4, 20, (4, 4, 4)),
        Relu("relu", "max", 3),
        Truncate("floor", "max", 5),
        Linear("long", (Term("relu", 1, 1, groups=3), Term("floor", 3, 1, 1, 1, 1)), pairs, 8),
        Combine("sum", (Summand("long"), Summand("relu", (2, 0, -1), (4, 3, 2, 1, 0), (), 3, True)), pairs, 8, 30),
        Relu("activation", "sum", 9),
        Linear("logits", (Term("activation", 5, 2),), Shape(4, 1, 1), 0, 36),
    )
    values = {"ring_bits": 36, "weight_bits": 8, **changes}
    return Program(Shape(2, 5, 5), steps, outputs=FOUR_CLASSES, name="public", **values)  # type: ignore[arg-type]


def gated_program(**changes: int) -> Program:
    """A map times one number for each of its channels, then truncated."""
    steps = (
        Linear("first", (Term(INPUT, 3, 3, 1, 1, 1, 1),), Shape(3, 5, 5), 0, 20),
        Relu("map", "first", 6),
        Pool("sums", "map", ((0, 5),), (1,), ((0, 5),), (1,)),
        Linear("excited", (Term("sums", 1, 1),), Shape(3, 1, 1), 0, 28),
        Relu("gates", "excited", 14),
        Gate("product", "map", "gates"),
        Combine("copy", (Summand("product"),), Shape(3, 5, 5), 0, 30),
        Truncate("floor", "copy", 12),
        Linear("logits", (Term("floor", 5, 5),), Shape(4, 1, 1), 0, 36),
    )
    values = {"ring_bits": 36, "weight_bits": 8, **changes}
    return Program(Shape(2, 5, 5), steps, outputs=FOUR_CLASSES, name="gated", **values)  # type: ignore[arg-type]


def program_reading(image: Shape, picture_part: float = 1.0) -> Program:
    """The smallest for images of this shape."""
    steps = (Linear("logits", (Term(INPUT, image.height, image.width),), Shape(2, 1, 1), 0, 24),)
    return Program(image, steps, 24, 8, Input(picture_part=picture_part))


def several_program(**changes: int) -> Program:
    """A 12-bit input of two bounds per channel; a map some of whose elements alone pass a ReLU; three outputs, one of
    them read further, one from a sum; a softmax along an axis."""
    taken = (17, 3, 44, 30, 8, 2)
    back = [-1] * 45
    for place, at in enumerate(taken):
        back[at] = place
    rest = tuple(-1 if at in taken else at for at in range(45))
    shape = Shape(3, 3, 5)
    steps = (
        Linear("first", (Term(INPUT, 3, 2, 1, 1, 1, 0),), shape, 0, 24),
        Gather("taken", "first", Shape(6, 1, 1), taken),
        Combine("taken/copy", (Summand("taken"),), Shape(6, 1, 1), 0, 24),
        Relu("relu", "taken/copy", 4),
        Gather("relu/back", "relu", shape, tuple(back)),
        Truncate("floor", "first", 4),
        Gather("floor/rest", "floor", shape, rest),
        Combine("mixed", (Summand("relu/back"), Summand("floor/rest")), shape, 0, 24),
        Linear("scores", (Term("mixed", 3, 5),), Shape(6, 1, 1), 3, 40),
        Gather("turned", "mixed", Shape(3, 5, 3), tuple(range(44, -1, -1))),
        Combine("boxes", (Summand("turned"), Summand("turned", shift=1, negative=True)), Shape(3, 5, 3), 5, 30),
    )
    outputs = (
        Output("map", "first"),
        Output("scores", "scores", (3, 2), "softmax", 1),
        Output("boxes", "boxes", (15, 3)),
        Output("again", "scores", (6,)),
    )
    source = Input("numbers", 12, (-1.0, 0.0), (1.0, 8.0), (2, 15), "signal")
    values = {"ring_bits": 40, "weight_bits": 8, **changes}
    return Program(Shape(2, 3, 5), steps, input=source, name="several", made_from="test", outputs=outputs, **values)


def random_inputs(program: Program, count: int, seed: int = 0) -> Array:
    """Integers as a client's array becomes them."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, program.input.largest + 1, (count, *program.image)).astype(program.input.dtype)


def random_weights(program: Program, seed: int = 0) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    return {
        name: rng.integers(-1000, 1000, shape)
        if name.endswith("/bias")
        else rng.integers(-127, 128, shape).astype(np.int8)
        for name, shape in program.weight_shapes.items()
    }


def naive(program: Program, weights: dict[str, Array], image: Array) -> list[int]:
    """One image, one multiplication at a time, in Python's own integers."""
    tensors: dict[str, dict[tuple[int, int, int], int]] = {INPUT: _as_dict(image)}
    for step in program.steps:
        shape = program.shapes[step.name]
        out = {}
        for c, y, x in product(range(shape.channels), range(shape.height), range(shape.width)):
            if isinstance(step, Linear):
                value = int(weights[step.bias_name][c, y, x])
                for number, term in enumerate(step.terms):
                    value += _dot(tensors[term.source], weights[step.weight_name(number)][c], term, y, x) << term.shift
            elif isinstance(step, Pool):
                rows, columns = range(*step.row_windows[y]), range(*step.column_windows[x])
                value = sum(tensors[step.source][c, i, j] for i in rows for j in columns)
                value *= step.row_factors[y] * step.column_factors[x]
            elif isinstance(step, Combine):
                value = step.constants[c] if step.constants else 0
                factors = step.factors or (1,) * len(step.summands)
                for s, factor in zip(step.summands, factors, strict=True):
                    at = tuple(index[n] if index else n for index, n in zip(s.indices, (c, y, x), strict=True))
                    element = 0 if -1 in at else tensors[s.source][at]  # type: ignore[index]
                    value += (-1) ** s.negative * factor * element << s.shift
            elif isinstance(step, Gather):
                number = step.indices[(c * shape.height + y) * shape.width + x]
                value = 0 if number == -1 else list(tensors[step.source].values())[number]
            elif isinstance(step, Truncate):
                value = tensors[step.source][c, y, x] // 2**step.truncate
            elif isinstance(step, Gate):
                value = tensors[step.source][c, y, x] * tensors[step.gate][c, 0, 0]
            elif isinstance(step, Relu):
                value = max(tensors[step.source][c, y, x], 0) // 2**step.truncate
            else:
                assert isinstance(step, Square)
                value = (tensors[step.source][c, y, x] // 2**step.truncate_before) ** 2 // 2**step.truncate_after
            out[c, y, x] = value
        tensors[step.name] = out
    return [value for output in program.outputs for value in tensors[output.source].values()]


def _dot(source: dict[tuple[int, int, int], int], weights: Array, term: Term, y: int, x: int) -> int:
    total = 0
    for i, ky, kx in np.ndindex(weights.shape):
        row = term.stride * y - term.pad_top + term.dilation * ky
        column = term.stride * x - term.pad_left + term.dilation * kx
        total += int(weights[i, ky, kx]) * source.get((i, row, column), 0)
    return total


def _as_dict(image: Array) -> dict[tuple[int, int, int], int]:
    return {(c, y, x): int(value) for (c, y, x), value in np.ndenumerate(image)}
