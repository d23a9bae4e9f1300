"""Steps captured as CUDA graphs do what the same steps do one operation at a time."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from sphynx.run.progress import QUIET
from sphynx.run.work import Work
from sphynx.search.captured import Captures
from sphynx.search.placement.candidates import placements
from sphynx.search.placement.place import place
from sphynx.search.placement.recipe import PlacementRecipe
from sphynx.search.recipe import SearchRecipe
from sphynx.search.search import search_cells
from tests.search.test_runs import RECIPE, small_data, small_design

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def test_without_graphs_a_step_runs_as_it_is() -> None:
    captures = Captures(enabled=False)
    x = torch.ones(2)
    assert torch.equal(captures.run("key", lambda value: value + 1, [x], list), torch.full((2,), 2.0))


@needs_cuda
@pytest.mark.parametrize("lanes", [False, True])
@pytest.mark.parametrize("strategy", ["darts", "darts-2nd", "pc-darts", "gaea"])
def test_a_captured_search_is_the_eager_one(strategy: str, lanes: bool, tmp_path: Path) -> None:
    values = {**RECIPE.to_json(), "architecture_learning_rate": 0.01, "autocast": False, "cuda_graphs": False}
    eager = search_cells(
        small_data(), strategy, SearchRecipe(**values), tmp_path / "e", Work(device=torch.device("cuda"), voice=QUIET)
    )
    values |= {"cuda_graphs": True, "lanes": lanes}
    graph = search_cells(
        small_data(), strategy, SearchRecipe(**values), tmp_path / "g", Work(device=torch.device("cuda"), voice=QUIET)
    )
    ours, theirs = ((tmp_path / name / "strengths.json").read_text() for name in "eg")
    assert graph.epochs == eager.epochs
    for one, other in zip(_numbers(ours), _numbers(theirs), strict=True):
        assert one == pytest.approx(other, abs=5e-3)


@needs_cuda
def test_a_captured_placement_is_the_eager_one(tmp_path: Path) -> None:
    found = [
        place(
            small_design(),
            small_data(),
            PlacementRecipe(epochs=3, batch_size=8, autocast=False, cuda_graphs=graphs),
            placements(3),
            tmp_path / str(graphs),
            Work(device=torch.device("cuda"), voice=QUIET),
        )
        for graphs in (False, True)
    ]
    assert found[1].beta_hat[-1] == pytest.approx(found[0].beta_hat[-1], abs=5e-2)


def _numbers(text: str) -> list[float]:
    import json

    epochs = json.loads(text)["epochs"]
    return [value for epoch in epochs for kind in epoch.values() for row in kind for value in row]
