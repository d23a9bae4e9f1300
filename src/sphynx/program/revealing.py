"""The program that a server serves in place of another, where its clients are to get a label alone (labels.py)."""

from __future__ import annotations

import math
from dataclasses import replace

from sphynx.errors import InputError, join_faults
from sphynx.program.ir import Program
from sphynx.program.labels import label_faults
from sphynx.program.security import Reveal, require_reveal


def revealed(program: Program, reveal: Reveal, margin: float = 0.0) -> Program:
    """Make the program whose clients get this; refuses combinations that the tables of modes do."""
    require_reveal(reveal, margin)
    return revealing_label(program, margin) if reveal == "label" else program


def revealing_label(program: Program, margin: float = 0.0) -> Program:
    """Make the same program for clients that get a label alone: the first of the largest scores, or that it is not sure
    where that leads the second by less than `margin`, in the units of the scores. Refuses what has no label."""
    require_reveal("label", margin)
    output = program.outputs[0]
    least = math.ceil(margin * 2.0 ** program.scales[output.name])
    faults = list(label_faults(program.outputs, replace(output, margin=least), program.shapes, program.ranges))
    if faults:
        raise InputError(
            join_faults(faults), where=program.name or "program", remedy="Reveal the numbers: leave `reveal` out."
        )
    return replace(program, outputs=(replace(output, reveals="label", margin=least),))
