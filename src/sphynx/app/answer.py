"""Answers as the page is told them: labels, probabilities where the network gives them, and all other outputs."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sphynx.program.ir import Program
from sphynx.service.prediction import Prediction

TOP = 5  # labels that a page shows
COSTS = ("backend", "batch", "offline_seconds", "offline_bytes", "online_seconds", "online_bytes", "online_rounds")


def answer_of(prediction: Prediction) -> dict[str, Any]:
    """An answer of a label alone has no `probabilities`; one without classes has no `labels`; `labels` is
    empty where the server is not sure."""
    told = prediction.to_json(TOP)
    if not prediction.has_scores:
        return {"labels": told["labels"], "outputs": [], **{name: told[name] for name in COSTS}}
    found = {name: told[name] for name in ("labels", "probabilities") if told.get(name)}
    if "probabilities" in found:
        found["integer_logits"] = prediction.integer_logits.tolist()
    classes = prediction.program.classes
    others = {name: array for name, array in prediction.outputs.items() if classes is None or name != classes.name}
    return {**found, "outputs": outputs_of(others.items()), **{name: told[name] for name in COSTS}}


def outputs_of(arrays: Iterable[tuple[str, NDArray[np.float64]]]) -> list[dict[str, Any]]:
    """Arrays for the page to draw: their numbers in single precision, base64 of little-endian bytes."""
    return [
        {
            "name": name,
            "dims": list(array.shape),
            "values": base64.b64encode(np.ascontiguousarray(array, "<f4").tobytes()).decode(),
        }
        for name, array in arrays
    ]


def outputs_in_the_clear(program: Program, integers: NDArray[np.int64]) -> list[dict[str, Any]]:
    """Lay out outputs that are not scores of classes, from the integers of all."""
    answers = program.answers(program.real_numbers(integers[None]))
    return outputs_of(
        (name, array[0]) for name, array in answers.items() if program.classes is None or name != program.classes.name
    )
