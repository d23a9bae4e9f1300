"""Walks a rectified layer of a network of ours into a fused graph: plain ReLUs, and what a reduction made of them.

Channels that are removed are not computed. Identities beside ReLUs are truncated as these are, so that the ring stays
narrow; a layer without a nonlinearity left stays part of the linear map around it. No torch.
"""

from __future__ import annotations

import numpy as np

from sphynx.compiler.frontend.numbers import Numbers, array_of, norm_of
from sphynx.compiler.fusion.affine import Floats, Node
from sphynx.compiler.fusion.fuse import Fuser
from sphynx.compiler.fusion.select import constant, select
from sphynx.program.ir import NOTHING, Relu, Square
from sphynx.space.reduced import IDENTITY, RELU, REMOVED, SQUARE
from sphynx.space.tally import Shape


def walk_activation(fuser: Fuser, numbers: Numbers, layer: str, node: Node, name: str) -> Node:
    """Walk the ReLU layer that `numbers` calls `layer`; `name` is what the program calls it."""
    described = numbers.reduced.get(layer)
    if described is None:
        return fuser.relu(node, name)
    kinds = described.kinds
    if described.is_per_value:
        return _walk_values(fuser, numbers, layer, node, name)
    if set(kinds) == {RELU}:
        return fuser.relu(node, name)
    if set(kinds) == {REMOVED}:
        return constant(fuser, np.zeros(node.shape))
    if not {RELU, SQUARE} & set(kinds):
        return _place(fuser, select(fuser, node, name, _places(kinds, IDENTITY)), kinds, IDENTITY, name)
    alive = tuple(number for number, kind in enumerate(kinds) if kind != REMOVED)
    kept = "".join(kinds[number] for number in alive)
    whole = fuser.as_tensor(select(fuser, node, f"{name}.kept", alive), f"{name}.input")
    made: list[Node] = []
    if RELU in kept:
        source = fuser.compared(select(fuser, whole, name, _places(kept, RELU)), f"{name}.compared")
        made.append(_place(fuser, fuser.activate(Relu(name, source)), kinds, RELU, name))
    if IDENTITY in kept:
        passed = fuser.truncated(select(fuser, whole, name, _places(kept, IDENTITY)), f"{name}.passed")
        made.append(_place(fuser, passed, kinds, IDENTITY, name))
    if SQUARE in kept:
        squares = _parabolas(numbers, f"{layer}.square")[:, list(_places(kinds, SQUARE))]
        parabola = _square(fuser, squares, select(fuser, whole, name, _places(kept, SQUARE)), f"{name}.square")
        made.append(_place(fuser, parabola, kinds, SQUARE, name))
    return sum(made[1:], made[0])


def _walk_values(fuser: Fuser, numbers: Numbers, layer: str, node: Node, name: str) -> Node:
    """The values of each kind are gathered, activated side by side, and put back in their places: gathering is free.

    Only the straight parts of squares depend on the channel, so they are scaled when they are back in their places.
    """
    kinds = np.frombuffer(numbers.reduced[layer].kinds.encode(), np.uint8)
    whole = fuser.as_tensor(node, f"{name}.input")
    source = fuser.named(whole, f"{name}.input")

    def taken(kind: str, word: str) -> Node:
        indices = np.flatnonzero(kinds == ord(kind))
        return fuser.tensor(fuser.gather(f"{name}.{word}", source, Shape(1, 1, len(indices)), indices))

    def placed(made: Node, kind: str, word: str) -> Node:
        chosen = kinds == ord(kind)
        indices = np.where(chosen, np.cumsum(chosen) - 1, NOTHING)
        return fuser.tensor(fuser.gather(f"{name}.{word}.placed", fuser.named(made, name), node.shape, indices))

    parts: list[Node] = []
    if ord(RELU) in kinds:
        rectified = fuser.activate(Relu(name, fuser.compared(taken(RELU, "rectified"), f"{name}.compared")))
        parts.append(placed(rectified, RELU, "relu"))
    if ord(IDENTITY) in kinds:
        passed = fuser.truncated(taken(IDENTITY, "straight"), f"{name}.passed")
        parts.append(placed(passed, IDENTITY, "passed"))
    total = fuser.as_tensor(sum(parts[1:], parts[0]), f"{name}.values") if parts else None
    if ord(SQUARE) in kinds:
        values = taken(SQUARE, "squares")
        compared = fuser.compared(values, f"{name}.square.input")
        a, b, c = _parabolas(numbers, f"{layer}.square")
        none = np.zeros(len(a))
        squared = placed(fuser.activate(Square(f"{name}.square", compared)), SQUARE, "square")
        straight = placed(fuser.truncated(fuser.tensor(compared), f"{name}.square.straight"), SQUARE, "line")
        parabola = fuser.scale(squared, a, none) + fuser.scale(straight, b, none)
        parabola = fuser.shift(parabola, c[:, None, None] * (kinds == ord(SQUARE)).reshape(node.shape))
        total = parabola if total is None else total + parabola
    return constant(fuser, np.zeros(node.shape)) if total is None else total


def _square(fuser: Fuser, coefficients: Floats, node: Node, name: str) -> Node:
    """a x^2 + b x + c; x is truncated too where some b is not zero."""
    a, b, c = coefficients
    source = fuser.compared(node, f"{name}.input")
    parabola = fuser.scale(fuser.activate(Square(name, source)), a, c)
    if not b.any():
        return parabola
    return parabola + fuser.scale(fuser.truncated(fuser.tensor(source), f"{name}.straight"), b, np.zeros(len(b)))


def _parabolas(numbers: Numbers, name: str) -> Floats:
    """a, b, c of each channel, from the normalised terms in which `network.square` learns them."""
    of_square, of_n, constant = array_of(numbers, f"{name}.coefficients")
    (factor, shift), (factor_2, shift_2) = (norm_of(numbers, f"{name}.{norm}") for norm in ("norm", "norm_of_square"))
    of_n2 = of_square * factor_2
    b = (2 * of_n2 * shift + of_n) * factor
    return np.stack([of_n2 * factor**2, b, (of_n2 * shift + of_n) * shift + of_square * shift_2 + constant])


def _places(kinds: str, wanted: str) -> tuple[int, ...]:
    return tuple(number for number, kind in enumerate(kinds) if kind == wanted)


def _place(fuser: Fuser, node: Node, kinds: str, wanted: str, name: str) -> Node:
    """The channels of one kind back in their places among all; nothing is in those of the others."""
    numbers = {place: number for number, place in enumerate(_places(kinds, wanted))}
    return select(fuser, node, name, tuple(numbers.get(place, NOTHING) for place in range(len(kinds))))
