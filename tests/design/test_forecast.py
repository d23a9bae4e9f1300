"""Which networks are timed for which stage, and in which order. How long anything takes is not asserted."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from sphynx.design import forecast as module
from sphynx.design.forecast import expensive_cells
from sphynx.design.time_budget import Estimate
from sphynx.design.timing import RunEnd
from sphynx.errors import InputError
from sphynx.search.placement.recipe import load_placement_recipe
from sphynx.search.ranking import random_cells
from sphynx.search.supernet.cellspace import CellSpace
from sphynx.space.account import account_of
from sphynx.space.design import Design
from sphynx.space.genotype import Genotype
from sphynx.space.published_cells import DARTS_V2, SPHYNX, into_sphynx_space
from sphynx.space.tally import Shape
from sphynx.train.job import Job
from tests.design.requests import TRAINING, pipeline


def multiplications(design: Design) -> int:
    return account_of(design).total.macs


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """Record what is timed, in its order. An epoch of a training `takes` as many seconds as its network multiplies."""
    calls: list[tuple[str, Any]] = []

    def of_training(job: Job) -> float:
        assert isinstance(job.design, Design)
        calls.append(("training", job.design))
        return float(multiplications(job.design))

    def of_placement(design: Design, *_: Any) -> float:
        calls.append(("placement", design))
        return 1.0

    def of_search(*_: Any) -> float:
        calls.append(("cells", None))
        return 1.0

    monkeypatch.setattr(module, "training_epoch_seconds", of_training)
    monkeypatch.setattr(module, "placement_epoch_seconds", of_placement)
    monkeypatch.setattr(module, "search_epoch_seconds", of_search)
    monkeypatch.setattr(module, "run_end", lambda _job: RunEnd(files_seconds=7.0, image_seconds=0.5))
    return calls


def by_stage(estimates: tuple[Estimate, ...]) -> dict[str, Estimate]:
    return {estimate.stage: estimate for estimate in estimates}


def test_cells_that_are_not_found_yet_are_timed_as_expensive_ones(tmp_path: Path, timed: list[tuple[str, Any]]) -> None:
    asked = pipeline(tmp_path, rivals=3)
    estimates = by_stage(asked.forecast.estimates())

    def network(cells: Genotype) -> Design:
        return dataclasses.replace(asked.outline.at_an_early_place, genotype=cells)

    space = CellSpace(asked.request.search.nodes)
    drawn = sorted(multiplications(network(cells)) for cells in random_cells(space, module.DRAWN, 0).values())
    typical, published = drawn[module.DRAWN // 2], multiplications(network(SPHYNX))
    expensive = multiplications(network(expensive_cells(space)))
    assert estimates["training"].epoch_seconds == expensive > typical
    assert estimates["comparison"].epoch_seconds == pytest.approx((typical + published) / 2)
    assert estimates["ranking"].epoch_seconds == pytest.approx(0.8 * (expensive + published + 3 * typical) / 5)
    placed = next(design for what, design in timed if what == "placement")
    assert multiplications(network(placed.genotype)) == expensive
    assert [what for what, _ in timed].count("training") == 3  # each network once


def test_expensive_cells_cost_more_than_the_published_and_the_usual_random_ones() -> None:
    design = Design(SPHYNX, 5, 5, (0, 1, 3), Shape(3, 32, 32), conv_stack="single")

    def cost(cells: Genotype) -> int:
        return multiplications(dataclasses.replace(design, genotype=cells))

    drawn = sorted(cost(cells) for cells in random_cells(CellSpace(), 100, 0).values())
    assert drawn[90] < cost(expensive_cells(CellSpace())) and cost(SPHYNX) < drawn[50]


def test_given_cells_are_timed_themselves(tmp_path: Path, timed: list[tuple[str, Any]]) -> None:
    given = into_sphynx_space(DARTS_V2)
    longer = dataclasses.replace(TRAINING, epochs=2)
    estimates = by_stage(pipeline(tmp_path, strategy="", genotype=given, training=longer).forecast.estimates())
    networks = [design.genotype for what, design in timed if what == "training"]
    assert networks[0] == given and networks.count(given) == 2 and SPHYNX in networks  # by both recipes
    assert (estimates["training"].runs, estimates["comparison"].runs) == (1, 3)


def test_every_stage_counts_what_its_runs_do_at_their_end(tmp_path: Path, timed: list[tuple[str, Any]]) -> None:
    """48 training images, of which a ranking holds out 9 and a placement 24 for each candidate; 30 test images."""
    asked = pipeline(tmp_path, rivals=1, placing=load_placement_recipe("smoke"))
    estimates = asked.forecast.estimates()
    assert [estimate.stage for estimate in estimates] == ["cells", "ranking", "placement", "training", "comparison"]
    ends = [0.0, 7 + 9 * 0.5, len(asked.places) * 24 * 0.5, 7 + 30 * 0.5, 7 + 30 * 0.5]
    assert [estimate.end_seconds for estimate in estimates] == ends
    assert timed


def test_too_small_a_budget_is_refused_before_supernet_and_candidates_are_timed(
    tmp_path: Path, timed: list[tuple[str, Any]]
) -> None:
    refuse = r"\(training 1 epochs x 1\) takes about .* without cells and ranking and placement and comparison"
    with pytest.raises(InputError, match=refuse) as refused:
        pipeline(tmp_path, rivals=1, time_budget=1.0).forecast.estimates()
    assert [what for what, _ in timed] == ["training"] and "leave out `strategy`" in refused.value.remedy
    timed.clear()
    pipeline(tmp_path, rivals=1, time_budget=1e9).forecast.estimates()
    assert [what for what, _ in timed][-2:] == ["placement", "cells"]
