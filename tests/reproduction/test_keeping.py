"""Runs kept as files under results/: a training lands in its rows, a search and a placement in their tables."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from reproduction.deviation import Deviations, Repeated
from reproduction.experiments import EXPERIMENTS
from reproduction.keeping import keep, runs_below
from reproduction.kept_searches import read_placements, read_searches
from reproduction.outcomes import Outcome, cells_of, read_kept
from reproduction.scales import design_of
from reproduction.verdicts import verdict_on

from sphynx.data.images import Data, ImageSet, make_data
from sphynx.errors import InputError
from sphynx.report.naming import DATA_SETS
from sphynx.run.progress import QUIET
from sphynx.run.work import Work
from sphynx.search.placement.candidates import placements
from sphynx.search.placement.place import place
from sphynx.search.placement.recipe import PlacementRecipe
from sphynx.search.recipe import load_recipe as load_search_recipe
from sphynx.search.search import search_cells
from sphynx.space.design import Design
from sphynx.space.published_cells import SPHYNX
from sphynx.space.tally import Shape
from sphynx.train.job import Job
from sphynx.train.loop import train
from sphynx.train.recipe import load_recipe


def noise(images: int, classes: int, size: int) -> Data:
    generator = torch.Generator().manual_seed(0)
    pixels = torch.randint(256, (images, 3, size, size), generator=generator, dtype=torch.uint8)
    part = ImageSet(pixels, torch.arange(images) % classes, tuple(map(str, range(classes))))
    return make_data("cifar100", part, part, where="noise")


@pytest.mark.slow
def test_a_kept_training_lands_in_the_rows_of_its_network(tmp_path: Path) -> None:
    """The network is the paper's, the images are noise: what counts is where the file is found again."""
    (better, worse) = (row for row in EXPERIMENTS["separable"].rows if row.label == "25.6K")
    data = noise(100, 100, 32)
    recipe = load_recipe("fast", {"epochs": 1, "warmup_epochs": 0, "batch_size": 50, "test_each_epoch": True})
    for row in (better, worse):
        design = design_of(row, *DATA_SETS["cifar100"], cells_of(row))
        train(Job(design, data, recipe, tmp_path / "runs" / row.series, voice=QUIET))
    (tmp_path / "runs" / "nothing").mkdir()
    files = [keep(run, tmp_path / "results") for run in runs_below(tmp_path / "runs")]
    assert sorted(file.relative_to(tmp_path / "results").as_posix() for file in files) == [
        "paper/separable.json",
        "paper/vanilla.json",
    ]
    assert all("command" not in json.loads(file.read_text())["environment"] for file in files)  # paths of a machine
    kept = read_kept([tmp_path / "results"])
    outcomes = [
        Outcome(row, None, kept=tuple(ours for file in kept if (ours := file.of(row, {})) is not None))
        for row in EXPERIMENTS["separable"].rows
    ]
    (ours,) = outcomes[0].kept
    assert ours.best_epoch == ours.accuracy and "epochs 1" in ours.differs
    assert [len(outcome.kept) for outcome in outcomes] == [1, 1, 0, 0, 0, 0, 0, 0]
    spread = Deviations([Repeated("cifar100", ours.differs, (1.0, 2.0))])
    verdict = verdict_on(EXPERIMENTS["separable"], outcomes, spread)
    assert verdict.word == "undecided" and "25.6K, vanilla against separable" in verdict.told


def test_a_kept_search_says_whether_convolutions_survived(tmp_path: Path) -> None:
    recipe = replace(load_search_recipe("smoke"), epochs=2, depth=2, epoch="best", nodes=4)
    result = search_cells(noise(40, 2, 8), "darts-unrolled", recipe, tmp_path / "cells", Work(voice=QUIET))
    assert keep(tmp_path / "cells", tmp_path, "mine") == tmp_path / "search" / "mine.json"
    (found,) = read_searches(tmp_path / "search")
    assert (found.name, found.epochs, found.genotype) == ("mine", 2, result.genotype)
    edges = [edge.operation for pair in found.genotype.normal for edge in pair]
    assert found.convolutions()[0] == sum(name not in ("skip", "avg_pool") for name in edges)


def test_a_kept_placement_is_judged_beside_a_grid(tmp_path: Path) -> None:
    design = Design(SPHYNX, 1, 3, (0, 1), Shape(3, 8, 8), 2)
    recipe = PlacementRecipe(epochs=2, batch_size=10, estimator="released")
    result = place(design, noise(40, 2, 8), recipe, placements(3), tmp_path / "d3", Work(voice=QUIET))
    keep(tmp_path / "d3", tmp_path)
    (found,) = read_placements(tmp_path / "placement")
    assert (found.best, found.depth, found.method) == (result.best, 3, "Algorithm 1 as released")
    assert found.tau_start == recipe.tau_start == 1000 and found.counts("uniform")


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no run"):
        keep(tmp_path, tmp_path)
