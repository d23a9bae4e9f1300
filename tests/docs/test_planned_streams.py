"""A plan for stream networks stands on their page until its runs are kept."""

from __future__ import annotations

from typing import Any

import pytest
from docs.planned_streams import PLANS, Kept, not_run
from reproduction.frontier import NETWORKS

from sphynx.space.stream import StreamDesign, stages_from_text
from sphynx.space.tally import Shape

IMAGE = Shape(3, 32, 32)


def trainings(network: str, count: int, **recipe: Any) -> Kept:
    stages, stem = stages_from_text(NETWORKS[network], IMAGE)
    design = StreamDesign(stages, IMAGE, 100, stem.stride, stem_kernel=stem.kernel)
    config = {"recipe": {"optimizer": "muon", "held_out": 0.0, **recipe}}
    run = {"config": config, "result": {"data": "cifar100", "epochs": recipe.get("epochs", 400)}}
    return Kept([(design, run)] * count, [], [])


def done(kept: Kept) -> set[str]:
    lines = list(not_run(kept))
    return {plan.runs for plan in PLANS if f"| {plan.runs} | {plan.minutes} |" not in lines}


@pytest.mark.parametrize(
    ("kept", "beginnings"),
    [
        (Kept([], [], []), []),
        (trainings("25k", 2), []),
        (trainings("25k", 3), ["25.6K by Muon"]),
        (trainings("25k", 3, epochs=1200), ["25.6K by Muon", "the same for 1,200 epochs"]),
        (trainings("25k", 3, optimizer="sgd"), []),
        (trainings("25k", 3, held_out=0.1), []),
        (trainings("12k", 1), ["12.7K"]),
        (trainings("51k", 1), ["51.2K"]),
        (trainings("102k", 1), ["102.4K"]),
        (Kept([], [{"relus": 25472, "prices": {"counted": "total"}}, {"relus": 51200}], []), ["allocations by total"]),
        (Kept([], [], [{"result": {"family": "stream"}}, {"result": {"cells": "searched"}}]), ["`sphynx design"]),
    ],
)
def test_what_is_kept_is_not_planned_any_more(kept: Kept, beginnings: list[str]) -> None:
    found = done(kept)
    assert len(found) == len(beginnings)
    assert all(any(plan.startswith(beginning) for plan in found) for beginning in beginnings)
