"""Allocation searches on data: what they write, that they resume, and that gates find where ReLUs are needed."""

import json
from pathlib import Path

import torch

from sphynx.run.progress import QUIET
from sphynx.run.work import Work
from sphynx.search.allocation.allocate import AllocationResult, allocate, allocate_by_gates, with_accuracies
from sphynx.search.allocation.candidates import allocations, relu_budget
from sphynx.search.allocation.gates import GateSearch
from sphynx.search.placement.recipe import load_placement_recipe
from sphynx.space.files import load_any_design
from sphynx.space.stream import Stage, StreamDesign
from sphynx.space.tally import Shape
from tests.train.small import data

DESIGN = StreamDesign((Stage(6, (2,)), Stage(8, (4,))), Shape(1, 4, 4), 3)
BUDGET = relu_budget(DESIGN, 12)
RECIPE = load_placement_recipe("smoke", {"epochs": 2, "batch_size": 8, "estimator": "losses"})


def test_gumbel_over_candidates(tmp_path: Path) -> None:
    candidates = allocations(DESIGN, BUDGET, parts=4, randoms=1, seed=0)
    result = allocate(candidates, data(), RECIPE, BUDGET, tmp_path, Work(voice=QUIET))
    assert {one.name for one in result.allocations} == set(candidates)
    assert abs(sum(one.probability for one in result.allocations) - 1) < 1e-6
    assert load_any_design(tmp_path / "design.json") == candidates[result.best.name]
    again = allocate(
        candidates, data(), RECIPE, BUDGET, tmp_path, Work(voice=QUIET)
    )  # continues: nothing is left to do
    assert again == result
    alone = with_accuracies(result, candidates, lambda design: design.relus / 100, tmp_path)
    kept = AllocationResult.from_json(json.loads((tmp_path / "allocation.json").read_text()))
    assert kept == alone and all(one.accuracy == one.relus / 100 for one in kept.allocations)


def test_gates_end_within_the_budget(tmp_path: Path) -> None:
    result = allocate_by_gates(DESIGN, data(), RECIPE, BUDGET, tmp_path, Work(voice=QUIET), factor=3)
    found = load_any_design(tmp_path / "design.json")
    assert isinstance(found, StreamDesign) and 0 < found.relus <= 12 and str(found) == result.best.stages
    assert [stage.width for stage in found.stages] == [6, 8]
    assert (
        allocate_by_gates(DESIGN, data(), RECIPE, BUDGET, tmp_path, Work(voice=QUIET), factor=3).best.stages
        == result.best.stages
    )


def test_gates_stand_for_relus_and_close_where_they_must() -> None:
    torch.manual_seed(0)
    wide = StreamDesign((Stage(6, (4,)), Stage(8, (6,))), Shape(1, 4, 4), 3)
    search = GateSearch(wide, relu_budget(wide, 10), RECIPE.resolved("cpu"), steps=60, device="cpu")
    images = data().train
    batch = images.images.float() / 128 - 1, images.labels
    before = float(search.spent().detach())
    for _ in range(60):
        search.step(batch, batch)
    assert float(search.spent().detach()) < before and float(search.spent().detach()) < 14
    for gate in search.gates:
        z = torch.randn(2, gate.scores.numel(), 3, 3)
        with torch.no_grad():
            gate.scores.fill_(50)
            torch.testing.assert_close(gate(z), z.relu())
            gate.scores.fill_(-50)
            torch.testing.assert_close(gate(z), z)
