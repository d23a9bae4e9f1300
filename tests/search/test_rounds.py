"""Successive halving: the bracket of its paper, what it costs, and that it keeps the best cell."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sphynx.search import rounds as module
from sphynx.search.cellspace import CellSpace
from sphynx.search.ranking import Training, random_cells, rank
from sphynx.search.rounds import FEW, LEAST_EPOCHS, SHARE, Round, rounds
from sphynx.space.genotype import Genotype


def cost(cells: int, epochs: int = 15) -> int:
    return sum(one.runs * one.epochs for one in rounds(cells, epochs))


def test_the_bracket_of_the_hyperband_paper() -> None:
    """Li et al. 2018, table 1 (eta = 3, s = 4): 81, 27, 9, 3, 1 runs of 1, 3, 9, 27, 81. Here three reach the end."""
    n, r = (81, 27, 9, 3), (1, 3, 9, 27)
    assert rounds(81, 3 * 27) == tuple(Round(runs, 3 * epochs) for runs, epochs in zip(n, r, strict=True))


def test_the_documented_costs() -> None:
    assert {cells: cost(cells) for cells in (4, 8, 16, 32)} == {4: 60, 8: 85, 16: 92, 32: 179}
    assert all(f"{cells}: {cost(cells)}" in (module.__doc__ or "") for cells in (8, 16, 32))
    assert rounds(16, 15) == (Round(16, 2), Round(6, 5), Round(2, 15))


@pytest.mark.parametrize(("cells", "epochs"), [(1, 15), (FEW, 15), (30, 2), (30, 3)])
def test_few_cells_or_few_epochs_are_one_round(cells: int, epochs: int) -> None:
    assert rounds(cells, epochs) == (Round(cells, epochs),)


@given(st.integers(1, 300), st.integers(1, 600))
def test_every_bracket_ends_at_the_whole_length_with_something_to_compare(cells: int, epochs: int) -> None:
    bracket = rounds(cells, epochs)
    assert bracket[0].runs == cells and bracket[-1].epochs == epochs
    assert bracket[-1].runs >= min(cells, 2)
    for before, after in pairwise(bracket):
        assert after.runs == math.ceil(before.runs / SHARE) and LEAST_EPOCHS <= before.epochs < after.epochs
    assert cost(cells, epochs) <= cells * epochs


def test_beaten_cells_stand_below_those_that_beat_them() -> None:
    """Accuracy grows with the epochs, so that accuracies of different rounds would order them wrongly."""
    cells = random_cells(CellSpace(5), 16, seed=1)
    worth = {genotype: number for number, genotype in enumerate(cells.values())}
    trained: list[tuple[Genotype, int]] = []

    def retrain(genotype: Genotype, epochs: int) -> float:
        trained.append((genotype, epochs))
        return worth[genotype] / 100 + (0.5 if (worth[genotype], epochs) == (0, 2) else 0) + epochs / 1000

    ranking = rank(cells, retrain, 15)
    # The worst shone in the first round only: it is last of the six that it got among, above those it beat.
    expected = [15, 14, 13, 12, 11, 0, *range(10, 0, -1)]
    assert [entry.label for entry in ranking] == [f"random cells {number}" for number in expected]
    assert [entry.round for entry in ranking] == [3] * 2 + [2] * 4 + [1] * 10
    assert ranking[0].trainings == tuple(Training(epochs, 0.15 + epochs / 1000) for epochs in (2, 5, 15))
    assert len(trained) == len(set(trained)) == 24
    described = ranking[5].to_json()
    assert described["round"] == 2 and [one["epochs"] for one in described["trainings"]] == [2, 5]
    assert described["accuracy"] == described["trainings"][-1]["accuracy"]
