"""`stream`, our own: a stream network at the budget (docs/stream.md), which learns from the given network's answers.

Nothing of the original's layers is kept. The planner's design with the fewest blocks is taken.
"""

from __future__ import annotations

import dataclasses

from sphynx.errors import InputError
from sphynx.reduce.task import Choice, Task
from sphynx.space.stream_planner import plan_stream

TOLERANCES = (0.05, 0.1, 0.2, 0.4)  # below the budget, the first that has a design


def choose_stream(task: Task) -> Choice:
    design = task.original.design
    for tolerance in TOLERANCES:
        try:
            plans = plan_stream(task.relu_budget, tolerance, design.image, design.classes)
        except InputError:
            continue
        return Choice(dataclasses.replace(plans.design, name="stream"))
    raise InputError(
        f"no stream network has {task.relu_budget:,} ReLUs or a few less on {design.image} images",
        where="`relu_budget`",
        remedy="Raise it, or use another `method`.",
    )
