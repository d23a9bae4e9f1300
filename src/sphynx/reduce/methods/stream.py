"""`stream`, our own: a stream network at the budget (docs/stream.md), which learns from the given network's answers.

Nothing of the original's layers is kept. The planner's design with the fewest blocks is taken.
"""

from __future__ import annotations

import dataclasses

from sphynx.errors import InputError
from sphynx.reduce.task import Choice, Task
from sphynx.space.stream import StreamDesign
from sphynx.space.stream_planner import plan_stream
from sphynx.space.tally import Shape

TOLERANCES = (0.05, 0.1, 0.2, 0.4)  # below the budget, the first that has a design


def choose_stream(task: Task) -> Choice:
    design = task.original.design
    return Choice(nearest_stream(task.relu_budget, design.image, design.classes))


def nearest_stream(relu_budget: int, image: Shape, classes: int) -> StreamDesign:
    for tolerance in TOLERANCES:
        try:
            plans = plan_stream(relu_budget, tolerance, image, classes)
        except InputError:
            continue
        return dataclasses.replace(plans.design, name="stream")
    raise InputError(
        f"no stream network has {relu_budget:,} ReLUs or a few less on {image} images",
        where="`relu_budget`",
        remedy="Raise it, or use another `method`.",
    )
