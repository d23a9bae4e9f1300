"""Lines that verbs print on how a program compares with the float network that it was compiled from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sphynx.errors import SphynxError
from sphynx.units import percent

if TYPE_CHECKING:
    from sphynx.program.judgement import Judgement


def judgement_line(judged: Judgement) -> str:
    if judged.same_class is not None:
        line = (
            f"same class as the float network ({judged.by}) for {percent(judged.same_class, 1)} of {judged.images} "
            f"calibration images, logits off by {percent(judged.error)} of their spread"
        )
    else:
        line = (
            f"outputs off from those of the float network ({judged.by}) by {percent(judged.error)} of their spread "
            f"over {judged.images} calibration inputs"
        )
    if len(judged.outputs) > 1:
        line += f" at most ({', '.join(f'{output.name} {percent(output.error)}' for output in judged.outputs)})"
    if judged.accuracy is not None and judged.float_accuracy is not None:
        line += f"; accuracy on these images {percent(judged.accuracy, 1)}"
        line += f", the float network's {percent(judged.float_accuracy, 1)}"
    if judged.hardly_varies:
        line += (
            f"; the float network's outputs hardly vary from image to image ({percent(judged.variation)} of their size)"
        )
    return line


def judgement_rows(judged: Judgement) -> list[list[str]]:
    rows = []
    if judged.accuracy is not None and judged.float_accuracy is not None:
        rows += [["integer accuracy", percent(judged.accuracy)], ["float accuracy", percent(judged.float_accuracy)]]
    if judged.same_class is not None:
        rows.append(["same class", percent(judged.same_class)])
    if judged.same_class is not None and len(judged.outputs) == 1:
        rows += [
            ["logit error, relative to their spread", percent(judged.error)],
            ["largest logit difference", f"{judged.largest_difference:.3g}"],
        ]
    else:
        for output in judged.outputs:
            rows += [
                [f"{output.name}: error, relative to its spread", percent(output.error)],
                [f"{output.name}: largest difference", f"{output.largest_difference:.3g}"],
            ]
    if judged.hardly_varies:
        rows.append(["float outputs hardly vary", f"{percent(judged.variation)} of their size"])
    return rows


def require_close(judged: Judgement | None, where: str) -> None:
    """A program whose logits are far off ends the verb with exit code 1."""
    if judged is not None and judged.fault is not None:
        what, remedy = judged.fault
        raise SphynxError(what, where=where, remedy=remedy)
