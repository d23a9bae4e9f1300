"""Scores of classes among a program's outputs: their names, the scores as real numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sphynx.errors import InputError
from sphynx.program.ir import Graph, Output, Program


def require_classes(program: Program) -> Output:
    """Refuse programs whose outputs are other numbers than scores of classes."""
    if program.classes is None:
        names = ", ".join(output.name for output in program.outputs)
        raise InputError(
            f"the program answers with {names}, none of which are scores of classes",
            where=program.name or "program",
            remedy="Read `outputs` of the answer.",
        )
    return program.classes


def real_logits(program: Program, integers: NDArray[np.int64]) -> NDArray[np.float64]:
    """Give the scores as real numbers, [..., classes], from the integers [..., numbers] of all outputs."""
    rows = program.real_numbers(integers.reshape(-1, integers.shape[-1]))
    found: NDArray[np.float64] = program.split(rows)[scores_of(program).name]
    return found.reshape(*integers.shape[:-1], -1)


def scores_of(program: Program) -> Output:
    """The scores of classes; where none are known, the first vector, which may be scores of classes without names."""
    vectors = (output for output in program.outputs if len(output.dims) == 1)
    return program.classes or next(vectors, None) or require_classes(program)


def possible_scores(graph: Graph) -> Output | None:
    """The output whose elements are scores of classes, or may be: a vector that is the only output."""
    known = next((output for output in graph.outputs if output.has_classes), None)
    only = graph.outputs[0] if len(graph.outputs) == 1 else None
    return known or (only if only is not None and len(only.dims) == 1 else None)


def names_of_classes(program: Program) -> tuple[str, ...]:
    """The names of the classes in the program's order: their numbers where it names none."""
    classes = require_classes(program)
    return classes.class_names or tuple(str(number) for number in range(classes.dims[0]))
