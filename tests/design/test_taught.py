"""Allocation searches that listen to a teacher: which logits come with which images, and what is found and resumed."""

import dataclasses
import math
from pathlib import Path

import pytest
import torch

from sphynx.design.taught import TaughtPairs, taught_lessons
from sphynx.errors import InputError
from sphynx.network.build import build_network
from sphynx.network.stream import StreamNetwork
from sphynx.run.progress import QUIET
from sphynx.run.work import Work
from sphynx.search.allocation.allocate import allocate, allocate_by_gates
from sphynx.search.allocation.candidates import allocations, relu_budget
from sphynx.search.placement.algorithm import PlacementSearch
from sphynx.search.placement.recipe import PlacementRecipe, load_placement_recipe
from sphynx.space.stream import Stage, StreamDesign
from sphynx.space.tally import Shape
from sphynx.train.job import Job
from sphynx.train.loop import HELD_OUT_SEED
from sphynx.train.objective import distillation_loss
from sphynx.train.recipe import load_recipe
from tests.train.small import DESIGN as TEACHER
from tests.train.small import data, job

START = StreamDesign((Stage(6, (2,)), Stage(8, (4,))), Shape(1, 4, 4), 3)
RECIPE = load_placement_recipe("taught", {"epochs": 2})


def taught(out: Path) -> Job:
    torch.manual_seed(0)
    work = job(out, distillation="kl", view_epochs=2, mixup=1.0, held_out=0.25)
    return dataclasses.replace(work, design=START).taught_by(build_network(TEACHER))


def test_views_lie_beside_their_images_and_held_out_ones_beside_them(tmp_path: Path) -> None:
    work = taught(tmp_path)
    assert work.teacher is not None
    network, pairs = work.teacher.eval(), TaughtPairs(work)
    _, held_out = data().train.split(0.25, HELD_OUT_SEED)
    [(_, labels)] = pairs.evaluation()
    assert torch.equal(labels, held_out.labels)
    for epoch in range(3):  # the third has the first one's views
        batches = list(pairs.pairs(epoch))
        assert len(batches) == pairs.steps == 3
        for ours, again in zip(batches[2:], pairs.pairs(epoch, 2), strict=True):  # an interrupted epoch goes on
            for side, same in zip(ours, again, strict=True):
                assert all(torch.equal(a, b) for a, b in zip(side, same, strict=True))
        for (x, y, logits), (beside, labels) in batches:
            with torch.no_grad():
                torch.testing.assert_close(logits.float(), network(x), rtol=2e-3, atol=2e-3)
            assert y.shape == (12, 3) and beside.shape == (12, 1, 4, 4) and labels.shape == (12,)


def test_both_searches_find_and_resume(tmp_path: Path) -> None:
    budget = relu_budget(START, START.relus, multiple=2)
    candidates = allocations(START, budget, parts=3, randoms=1, seed=0)
    lessons = taught_lessons(taught(tmp_path / "views"))
    gumbel = allocate(candidates, data(), RECIPE, budget, tmp_path / "gumbel", Work(voice=QUIET), lessons=lessons)
    assert gumbel == allocate(
        candidates, data(), RECIPE, budget, tmp_path / "gumbel", Work(voice=QUIET), lessons=lessons
    )
    assert {one.name for one in gumbel.allocations} == set(candidates)
    gates = allocate_by_gates(START, data(), RECIPE, budget, tmp_path / "gates", Work(voice=QUIET), lessons=lessons)
    assert gates.best.relus <= START.relus
    with pytest.raises(InputError):  # the folder is that of a search with a teacher
        allocate_by_gates(START, data(), RECIPE, budget, tmp_path / "gates", Work(voice=QUIET))


def test_weights_keep_their_size_in_the_first_steps() -> None:
    """At the full rate from the first step on, a teacher's gradient makes them several times as large."""
    training, generator = load_recipe("frontier"), torch.Generator().manual_seed(0)
    design = StreamDesign((Stage(16, (6,)), Stage(32, (16, 16))), Shape(3, 8, 8), 100)
    lessons = [
        (torch.randn(32, 3, 8, 8, generator=generator), 6 * torch.randn(32, 100, generator=generator))
        for _ in range(30)
    ]

    def loss(logits: torch.Tensor, taught: torch.Tensor) -> torch.Tensor:
        return training.distillation_weight * distillation_loss(logits, taught, training)

    def growth(recipe: PlacementRecipe) -> float:
        torch.manual_seed(0)
        network = StreamNetwork(design)
        steps = recipe.epochs * 88  # as many as nine tenths of CIFAR-100 have, in batches of 512
        search = PlacementSearch([network], network.stem, recipe, steps=steps, generator=generator, loss=loss)
        before = _norm(network)
        for x, taught in lessons:
            search.step((x, taught), (x, taught.argmax(dim=1)))
        return _norm(network) / before

    recipe = load_placement_recipe("taught").resolved("cpu")
    assert growth(recipe) < 1.5 < 2 < growth(dataclasses.replace(recipe, rate_warmup=0.0))


def _norm(network: torch.nn.Module) -> float:
    return math.sqrt(sum(float(p.detach().square().sum()) for p in network.parameters() if p.ndim == 4))


def test_nothing_held_out_is_refused(tmp_path: Path) -> None:
    work = taught(tmp_path)
    with pytest.raises(InputError, match="images held out"):
        TaughtPairs(dataclasses.replace(work, recipe=dataclasses.replace(work.recipe, held_out=0.0)))
