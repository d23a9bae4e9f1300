"""Successive halving: the bracket of its paper, what it costs, and that it keeps the best cell."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sphynx.search import ranking as module
from sphynx.search.ranking import FEW, SHARE, Round, Training, random_cells, rank, rounds
from sphynx.search.supernet.cellspace import CellSpace
from sphynx.space.genotype import Genotype


def cost(drawn: int, others: int = 2, epochs: int = 15) -> int:
    return sum(one.runs * one.epochs for one in rounds(drawn, others, epochs))


def test_the_bracket_of_the_hyperband_paper() -> None:
    """Li et al. 2018, table 1 (eta = 3, s = 4): 81, 27, 9, 3, 1 runs of 1, 3, 9, 27, 81. Here three reach the end."""
    n, r = (81, 27, 9, 3), (1, 3, 9, 27)
    assert rounds(81, 0, 3 * 27) == tuple(Round(runs, 3 * epochs) for runs, epochs in zip(n, r, strict=True))


def test_the_documented_costs() -> None:
    assert {drawn: cost(drawn) for drawn in (2, 6, 14, 30)} == {2: 60, 6: 90, 14: 113, 30: 200}
    assert all(f"{drawn}: {cost(drawn)}" in (module.__doc__ or "") for drawn in (6, 14, 30))
    assert rounds(14, 2, 15) == (Round(14, 2), Round(5, 5), Round(4, 15))


@pytest.mark.parametrize(
    ("drawn", "others", "epochs"), [(0, 1, 120), (1, 0, 15), (FEW, 0, 15), (FEW - 2, 2, 15), (2, 9, 15), (30, 2, 3)]
)
def test_few_cells_or_few_epochs_are_one_round(drawn: int, others: int, epochs: int) -> None:
    assert rounds(drawn, others, epochs) == (Round(drawn + others, epochs),)


@given(st.integers(0, 300), st.integers(0, 20), st.integers(1, 600), st.integers(2, 40))
def test_every_bracket_ends_at_the_whole_length_with_something_to_compare(
    drawn: int, others: int, epochs: int, least: int
) -> None:
    *short, last = rounds(drawn, others, epochs, least)
    assert last.epochs == epochs and last.runs - others >= min(drawn, 1)
    bracket = [*short, Round(last.runs - others, epochs)]
    assert bracket[0].runs == drawn
    for before, after in pairwise(bracket):
        assert after.runs == math.ceil(before.runs / SHARE) and least <= before.epochs < after.epochs
    assert cost(drawn, others, epochs) <= (drawn + others) * epochs


def test_beaten_cells_stand_below_those_that_beat_them() -> None:
    """Accuracy grows with the epochs, so that accuracies of different rounds would order them wrongly."""
    cells = random_cells(CellSpace(5), 16, seed=1)
    worth = {genotype: number for number, genotype in enumerate(cells.values())}
    trained: list[tuple[Genotype, int]] = []

    def retrain(genotype: Genotype, epochs: int) -> float:
        trained.append((genotype, epochs))
        return worth[genotype] / 100 + (0.5 if (worth[genotype], epochs) == (0, 2) else 0) + epochs / 1000

    ranking = rank({}, cells, retrain, 15)
    # The worst shone in the first round only: it is last of the six that it got among, above those it beat.
    expected = [15, 14, 13, 12, 11, 0, *range(10, 0, -1)]
    assert [entry.label for entry in ranking] == [f"random cells {number}" for number in expected]
    assert [len(entry.trainings) for entry in ranking] == [3] * 2 + [2] * 4 + [1] * 10
    assert ranking[0].trainings == tuple(Training(epochs, 0.15 + epochs / 1000) for epochs in (2, 5, 15))
    assert len(trained) == len(set(trained)) == 24
    described = ranking[5].to_json()
    assert [one["epochs"] for one in described["trainings"]] == [2, 5]
    assert described["accuracy"] == described["trainings"][-1]["accuracy"]


def test_known_cells_are_not_dropped_for_a_slow_start() -> None:
    """As on CIFAR-100, where the cells that were best after 15 epochs were not among the first third after 5."""
    drawn = random_cells(CellSpace(5), 7, seed=1)
    found = drawn.pop("random cells 0")
    trained: list[tuple[Genotype, int]] = []

    def retrain(genotype: Genotype, epochs: int) -> float:
        trained.append((genotype, epochs))
        return (0.1 if epochs < 15 else 0.9) if genotype == found else 0.5

    ranking = rank({"found": found}, drawn, retrain, 15)
    assert ranking[0].label == "found" and ranking[0].trainings == (Training(15, 0.9),)
    assert [epochs for genotype, epochs in trained if genotype == found] == [15]
    assert [epochs for genotype, epochs in trained if genotype != found] == [5] * 6 + [15] * 2
