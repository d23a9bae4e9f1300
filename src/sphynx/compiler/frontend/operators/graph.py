"""A network as it was read: operations in ONNX's words on named values, constants as arrays. No torch.

Every operation gets a name for the steps that it becomes, `part.3.conv1`. A part is what lies between ReLUs: operations
that hand each other values without a nonlinearity in between. choose.py weighs a part's cuts by the maps of that part.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sphynx.compiler.frontend.operators.finals import End, without_finals
from sphynx.compiler.frontend.operators.operation import NONLINEAR, Call, Operation
from sphynx.compiler.frontend.operators.recognise import recognised
from sphynx.program.convolve import Array
from sphynx.space.tally import Shape

LOGITS = "logits"


@dataclass(frozen=True, eq=False)
class OperatorGraph:
    name: str
    where: str  # the file or module, for errors
    image: Shape
    input: str
    ends: tuple[End, ...]  # its outputs, without what the client applies to them
    operations: tuple[Operation, ...]
    constants: Mapping[str, Array]
    view: Callable[[Array], Array]  # numbers of an image's elements as the network's input has them


def assemble(
    calls: Sequence[Call],
    constants: Mapping[str, Array],
    *,
    name: str,
    where: str,
    image: Shape,
    input: str,
    outputs: Mapping[str, str],
    opset: int,
    view: Callable[[Array], Array] = lambda numbers: numbers,
) -> OperatorGraph:
    """Assemble what the outputs, values by name, need, without what turns logits into probabilities."""
    needed = [call for call in _select_needed(calls, outputs.values()) if call.outputs[0] not in constants]
    needed, ends = without_finals(needed, outputs, opset)
    needed = _select_needed(recognised(needed, constants), [end.value for end in ends])
    operations = tuple(_operations(needed, opset, where))
    return OperatorGraph(name, where, image, input, ends, operations, constants, view)


def _select_needed(calls: Sequence[Call], outputs: Iterable[str]) -> list[Call]:
    wanted, found = {*outputs}, []
    for call in reversed(calls):
        if wanted.intersection(call.outputs):
            wanted.update(call.inputs)
            found.append(call)
    return found[::-1]


def _operations(calls: list[Call], opset: int, where: str) -> Iterator[Operation]:
    parts = _parts(calls)
    taken = {LOGITS}
    for number, call in enumerate(calls):
        word = plain = re.sub(r"\W+", "_", call.name, flags=re.ASCII).strip("_") or f"{call.kind}_{number}"
        while word in taken:
            word = f"{plain}_{len(taken)}"
        taken.add(word)
        yield Operation(
            kind=call.kind,
            label=f"{where}, {call.place}",
            place=call.place,
            part=f"part.{parts[number]}",
            word=word,
            inputs=call.inputs,
            outputs=call.outputs,
            attributes=call.attributes,
            opset=opset,
            fold=call.fold,
        )


def _is_nonlinear(call: Call, made: Container[str]) -> bool:
    """A product of two values that calls make is made of gates."""
    multiplies = call.kind in ("Mul", "MatMul") and all(name in made for name in call.inputs)
    return call.kind in NONLINEAR or call.kind == "Pow" or multiplies


def _parts(calls: list[Call]) -> list[int]:
    """The number of each call's part, in the order of their first calls."""
    makers = {name: number for number, call in enumerate(calls) for name in call.outputs}
    roots = list(range(len(calls)))

    def root(number: int) -> int:
        while roots[number] != number:
            number = roots[number]
        return number

    for number, call in enumerate(calls):
        for maker in (makers[name] for name in call.inputs if name in makers):
            if not _is_nonlinear(calls[maker], makers):
                first, second = sorted((root(maker), root(number)))
                roots[second] = first
    numbers = {first: number for number, first in enumerate(dict.fromkeys(map(root, range(len(calls)))))}
    return [numbers[root(number)] for number in range(len(calls))]
