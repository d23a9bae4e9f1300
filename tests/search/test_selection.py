"""Early stopping, perturbation-based selection, ranking and spread."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from sphynx.search.perturbation import select_by_perturbation
from sphynx.search.ranking import random_cells, rank, spread
from sphynx.search.recipe import SearchRecipe
from sphynx.search.stopping import cells_without_convolution, dominant_eigenvalue, eigenvalue_grew, too_many_skips
from sphynx.search.supernet.cellspace import KINDS, CellSpace
from sphynx.search.supernet.mixture import Mixture, Mixtures
from sphynx.space.cell import cell
from sphynx.space.genotype import Genotype
from sphynx.space.published_cells import SPHYNX


def test_the_dominant_eigenvalue_is_torchs() -> None:
    torch.manual_seed(0)
    matrix = torch.randn(6, 6)
    matrix = matrix + matrix.T
    x, y = torch.randn(2, requires_grad=True), torch.randn(2, 2, requires_grad=True)

    def quadratic() -> torch.Tensor:
        both = torch.cat([x, y.flatten()])
        return both @ matrix @ both / 2

    found = dominant_eigenvalue(quadratic, [x, y], iterations=500, generator=torch.Generator().manual_seed(0))
    values = torch.linalg.eigvalsh(matrix)
    assert found == pytest.approx(float(values[values.abs().argmax()]), rel=1e-3)


def test_without_curvature_the_eigenvalue_is_zero() -> None:
    x = torch.randn(3, requires_grad=True)
    assert dominant_eigenvalue(lambda: x.sum(), [x], iterations=3, generator=torch.Generator()) == 0.0


def test_an_eigenvalue_that_grows_by_a_third_stops() -> None:
    recipe = SearchRecipe(hessian_window=2, hessian_ratio=0.75)
    assert not eigenvalue_grew([1.0, 1.0, 1.2], recipe)
    assert not eigenvalue_grew([1.0, 1.0, 1.2, 1.2], recipe)
    assert eigenvalue_grew([1.0, 1.0, 1.4, 1.4], recipe)


def test_skips_are_counted_in_the_normal_cell() -> None:
    assert not too_many_skips(SPHYNX, SearchRecipe())
    assert not too_many_skips(SPHYNX, SearchRecipe(max_skips=4))
    assert too_many_skips(SPHYNX, SearchRecipe(max_skips=3))


def test_a_cell_without_convolution_is_named() -> None:
    """The normal cell that DARTS found by the paper's recipe on CIFAR-100 (results/search/darts-paper.json)."""
    collapsed = cell("avg_pool 0, skip 1", "skip 1, skip 2", "avg_pool 0, skip 2", "avg_pool 0, skip 2")
    assert cells_without_convolution(SPHYNX) == []
    assert cells_without_convolution(Genotype(normal=collapsed, reduce=SPHYNX.reduce)) == ["normal"]
    assert cells_without_convolution(Genotype(normal=collapsed, reduce=collapsed)) == ["normal", "reduce"]


def test_perturbation_keeps_what_is_missed_most() -> None:
    """The score counts certain operations and edges, whatever the mixture's own weights prefer."""
    space = CellSpace(5, ("conv3", "skip"))
    wanted = {
        "normal": cell("skip 0, conv3 1", "skip 1, skip 2"),
        "reduce": cell("conv3 0, conv3 1", "conv3 0, skip 2"),
    }
    paths = {kind: space.paths_of(wanted[kind]) for kind in KINDS}
    biased = torch.tensor([0.2, 0.5, 0.3]).expand(len(space.edges), 3)
    tuned: list[Any] = []

    def score(mixtures: Mixtures) -> float:
        total = 0.0
        for kind in KINDS:
            weights = mixtures[kind].weights
            assert weights is not None
            assert torch.all((weights.sum(dim=1) - 1).abs().lt(1e-5) | weights.sum(dim=1).eq(0))
            total += sum(float(weights[edge, c]) for edge, columns in enumerate(paths[kind]) for c in columns)
        return total

    found = select_by_perturbation(
        space,
        {kind: Mixture(weights=biased) for kind in KINDS},
        KINDS,
        score,
        tuned.append,
        torch.Generator().manual_seed(0),
    )
    assert (found.normal, found.reduce) == (wanted["normal"], wanted["reduce"])
    assert len(tuned) == 2 * (len(space.edges) + 1)


def test_ranks_best_first_and_trains_equal_cells_once() -> None:
    cells = random_cells(CellSpace(5), 3, seed=1)
    twice = {**cells, "again": cells["random cells 0"]}
    trained: list[Genotype] = []
    scores = dict(zip(cells.values(), [0.2, 0.9, 0.5], strict=True))

    def retrain(genotype: Genotype, epochs: int) -> float:
        assert epochs == 15  # few cells: one round of the whole length
        trained.append(genotype)
        return scores[genotype]

    ranking = rank(twice, {}, retrain, 15)
    assert [entry.label for entry in ranking] == ["random cells 1", "random cells 2", "random cells 0", "again"]
    assert len(trained) == 3
    assert random_cells(CellSpace(5), 3, seed=1) == cells


def test_the_spread_of_seeds() -> None:
    assert spread([SPHYNX], [0.5]).deviation is None
    both = spread([SPHYNX, SPHYNX], [0.4, 0.6])
    assert (both.mean, both.agreement) == (0.5, 1.0)
    assert both.deviation == pytest.approx(0.1414, abs=1e-3)
