"""Programs that reveal a label: which can, what they are bound to, and the oracle of labels."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from sphynx.errors import InputError
from sphynx.program.ir import Linear, Output
from sphynx.program.labels import NOT_SURE, find_labels
from sphynx.program.parse import program_from_json
from sphynx.program.revealing import revealing_label
from sphynx.space.tally import Shape
from tests.program.programs import FOUR_CLASSES, program_reading, several_program, small_program


def test_a_program_that_reveals_a_label_is_another_one() -> None:
    program = small_program()
    label, sure = revealing_label(program), revealing_label(program, margin=3)
    assert len({one.content_hash for one in (program, label, sure)}) == 3
    assert (program.reveals_label, label.reveals_label) == (False, True)
    for one in (program, label, sure):
        assert program_from_json(json.loads(json.dumps(one.to_json()))) == one
    assert "margin" not in program.to_json()["outputs"][0]
    assert replace(sure, outputs=FOUR_CLASSES) == program


def test_a_margin_is_in_the_units_of_the_scores() -> None:
    program = small_program()
    steps = tuple(replace(s, scale=5) if isinstance(s, Linear) and s.name == "logits" else s for s in program.steps)
    scaled = replace(program, steps=steps)
    assert [revealing_label(scaled, margin).outputs[0].margin for margin in (0, 0.01, 1, 1.5)] == [0, 1, 32, 48]
    for margin in (-0.5, float("nan"), float("inf")):
        with pytest.raises(InputError, match="not a margin"):
            revealing_label(scaled, margin)
    with pytest.raises(InputError, match="no number of 36 bits leads by"):
        revealing_label(scaled, 2.0**40)


def test_programs_without_a_label_are_refused() -> None:
    with pytest.raises(InputError, match="has several outputs"):
        revealing_label(several_program())
    with pytest.raises(InputError, match="not scores of classes"):
        revealing_label(program_reading(Shape(1, 4, 4)))
    each_holds = (replace(FOUR_CLASSES[0], final="sigmoid"),)
    with pytest.raises(InputError, match="several of its classes may hold"):
        revealing_label(replace(small_program(), outputs=each_holds))
    single = program_reading(Shape(1, 4, 4))
    steps = tuple(replace(step, shape=Shape(1, 1, 1)) for step in single.steps if isinstance(step, Linear))
    one = replace(single, steps=steps, outputs=(Output("logits", "logits", class_names=("x",)),))
    with pytest.raises(InputError, match="2 to 4,096 classes, not of 1"):
        revealing_label(one)


def test_the_first_of_the_largest_scores_is_the_label() -> None:
    scores = np.array([[3, 7, 7], [9, 9, 2], [-5, -6, -4], [0, 10, 9]])
    assert find_labels(scores).tolist() == [1, 0, 2, 1]
    assert find_labels(scores, margin=1).tolist() == [NOT_SURE, NOT_SURE, 2, 1]
    assert find_labels(scores, margin=2).tolist() == [NOT_SURE] * 4
