"""Verdicts on one network that beats another: by pairs of equal settings and the number of their seeds."""

from __future__ import annotations

import dataclasses

import pytest
from reproduction.deviation import Deviations, Repeated
from reproduction.experiments import EXPERIMENTS
from reproduction.kept_searches import RankedCells
from reproduction.outcomes import Outcome, differing_settings
from reproduction.verdicts import Verdict
from reproduction.verdicts import verdict_on as verdict_beside

from sphynx.train.recipe import load_recipe
from tests.reproduction.planted import Found, ours, outcomes, verdict_on


@pytest.mark.parametrize(
    ("separable", "word"), [(64.0, "reproduced"), (66.5, "undecided"), (67.9, "not reproduced"), (None, "not run")]
)
def test_a_comparison_is_judged_by_pairs_of_equal_settings(separable: float | None, word: str) -> None:
    found: Found = {("vanilla", "25.6K"): (ours(67.0, "epochs 80"), ours(60.0))}
    found["separable", "25.6K"] = () if separable is None else (ours(separable, "epochs 80"),)
    verdict = verdict_on(EXPERIMENTS["separable"], outcomes("separable", found))
    assert verdict.word == word
    gap = "" if separable is None else f"{67.0 - separable:+.2f} points (paper +0.77; n=1 and 1 show 0.71)"
    assert gap in verdict.told
    assert verdict.extent == ("" if separable is None else "at 1 of 4 sizes after 80 epochs")


def test_more_seeds_decide_what_fewer_leave_open() -> None:
    def judged(n: int) -> Verdict:
        found: Found = {
            ("vanilla", "25.6K"): (ours(60.5, "epochs 30"),) * n,
            ("separable", "25.6K"): (ours(60.0, "epochs 30"),) * n,
        }
        return verdict_on(EXPERIMENTS["separable"], outcomes("separable", found))

    assert [judged(n).word for n in (1, 2, 4)] == ["undecided", "reproduced", "reproduced"]
    assert "n=4 and 4 show 0.35" in judged(4).told


def test_every_pair_needs_its_own_smallest_difference() -> None:
    found: Found = {
        ("vanilla", "25.6K"): (ours(60.5, "epochs 30"),) * 8,
        ("separable", "25.6K"): (ours(60.0, "epochs 30"),) * 8,
        ("vanilla", "30.7K"): (ours(60.5, "epochs 30"),),
        ("separable", "30.7K"): (ours(60.0, "epochs 30"),),
    }
    assert verdict_on(EXPERIMENTS["separable"], outcomes("separable", found)).word == "undecided"
    found["separable", "30.7K"] = (ours(61.3, "epochs 30"),)
    assert verdict_on(EXPERIMENTS["separable"], outcomes("separable", found)).word == "not reproduced"


def test_nothing_is_decided_where_no_spread_is_known() -> None:
    found: Found = {("vanilla", "25.6K"): (ours(60.0),), ("separable", "25.6K"): (ours(40.0),)}
    verdict = verdict_beside(EXPERIMENTS["separable"], outcomes("separable", found), Deviations([]))
    assert verdict.word == "undecided" and "no network was trained with two seeds" in verdict.told


def test_the_spread_and_whose_it_is_are_said() -> None:
    found: Found = {
        ("vanilla", "25.6K"): (ours(60.0, "epochs 30"),),
        ("separable", "25.6K"): (ours(50.0, "epochs 30"),),
    }
    experiment, rows = EXPERIMENTS["separable"], outcomes("separable", found)
    own = Deviations([Repeated("cifar100", ("epochs 30",), (60.0, 60.5) * 50)])
    assert "deviation between seeds of all settings: " in verdict_on(experiment, rows).told
    assert "deviation between seeds by these settings: 0.25 (99 degrees of freedom)" in (
        verdict_beside(experiment, rows, own).told
    )


def test_rankings_speak_where_no_cells_were_trained_beside_random_ones() -> None:
    short, long = "5 epochs", "15 epochs"
    rankings = [
        RankedCells("sphynx", "sphynx", long, 54.0),
        RankedCells("random cells 1", "random-1", long, 53.0),
        RankedCells("random cells 2", "random-2", long, 52.0),
        RankedCells("random cells 3", "random-3", short, 60.0),
        RankedCells("darts, seed 0", "darts", long, 33.0),
    ]
    published, own = (EXPERIMENTS[name] for name in ("random-cells", "search"))
    assert (
        ": +1.50 points (n=1 and 2 show 0.61)"
        in verdict_on(published, outcomes("random-cells", {}), rankings=rankings).told
    )
    assert verdict_on(own, outcomes("search", {}), rankings=rankings).word == "not reproduced"
    both: Found = {("Sphynx cells", "25.6K"): (ours(60.0),), ("random cells", "25.6K"): (ours(60.1),)}
    assert verdict_on(published, outcomes("random-cells", both), rankings=rankings).word == "undecided"


def test_one_random_cell_decides_nothing() -> None:
    first, *others = (row for row in EXPERIMENTS["random-cells"].rows)

    def judged(trained: int) -> Verdict:
        kept = [(ours(60.0),)] + [(ours(58.0),)] * trained + [()] * (len(others) - trained)
        rows = zip((first, *others), kept, strict=True)
        return verdict_on(EXPERIMENTS["random-cells"], [Outcome(row, None, kept=found) for row, found in rows])

    assert judged(len(others)).word == "reproduced"
    assert (
        judged(len(others)).findings[0].startswith("25.6K, Sphynx cells against random cells: +2.00 points (n=1 and 4")
    )
    assert judged(1).word == "undecided" and judged(1).findings[-1] == "1 of 4 random cells were trained"


def test_distillation_is_judged_by_pairs_with_and_without_a_teacher() -> None:
    experiment = EXPERIMENTS["distillation"]
    taught: Found = {("Sphynx, distilled", "25.6K"): (ours(66.0, "epochs 200"),)}
    assert verdict_on(experiment, outcomes("distillation", taught)).word == "not run"
    both: Found = {**taught, ("Sphynx", "25.6K"): (ours(64.0, "epochs 200"),)}
    verdict = verdict_on(experiment, outcomes("distillation", both))
    assert verdict.word == "reproduced" and "+2.00 points" in verdict.told


@pytest.mark.parametrize(("by_mean", "word"), [(66.0, "undecided"), (62.5, "not reproduced"), (64.1, "not reproduced")])
def test_students_are_judged_one_by_one_by_either_loss_of_the_paper(by_mean: float, word: str) -> None:
    """Its formula sums squares, its text says their mean; students of two teachers are not two seeds of one."""
    by_sum = [dataclasses.replace(ours(62.0, "epochs 200"), teacher=t, folders=(t,)) for t in ("first", "second")]
    mean = ours(by_mean, "epochs 200", "distillation_reduction mean")
    taught = (*by_sum, dataclasses.replace(mean, teacher="third", folders=("third",)))
    found: Found = {("Sphynx, distilled", "25.6K"): taught, ("Sphynx", "25.6K"): (ours(64.0, "epochs 200"),)}
    verdict = verdict_on(EXPERIMENTS["distillation"], outcomes("distillation", found))
    assert verdict.word == word and ("our students disagree" in verdict.told) == (word == "undecided")
    assert "distilled (first) against Sphynx: -2.00 points" in verdict.told
    assert f"distilled (third) against Sphynx: {by_mean - 64:+.2f} points" in verdict.told


def test_a_run_by_the_papers_recipe_differs_in_nothing() -> None:
    (row, *_) = EXPERIMENTS["cifar100"].rows
    config = {
        "recipe": load_recipe("paper-cifar100").to_json(),
        "teacher": None,
        "design": {"genotype": {}, "conv_stack": "paper"},
    }
    assert differing_settings(row.data, config) == ()
    watched = load_recipe("paper-cifar100", {"test_each_epoch": True, "batch_size": 512}).to_json()
    single = {"genotype": {}, "conv_stack": "single"}
    assert differing_settings(row.data, {**config, "recipe": watched, "design": single}) == (
        "single convolutions",
        "batch_size 512",
    )
    assert "a teacher of another kind" in differing_settings(row.data, {**config, "teacher": {"width": 64}})


@pytest.mark.parametrize(
    ("accuracies", "word"),
    [((36.0, 58.0), "undecided"), ((36.0, 37.0), "not reproduced"), ((58.0, 59.0), "reproduced")],
)
def test_searches_of_our_own_are_judged_one_by_one(accuracies: tuple[float, ...], word: str) -> None:
    searched, *random = EXPERIMENTS["search"].rows
    networks = tuple(
        dataclasses.replace(ours(accuracy), design=str(number), folders=(f"cells-{number}",))
        for number, accuracy in enumerate(accuracies)
    )
    kept = [Outcome(searched, None, kept=networks), *(Outcome(row, None, kept=(ours(56.0),)) for row in random)]
    verdict = verdict_on(EXPERIMENTS["search"], kept)
    assert verdict.word == word and ("our searches disagree" in verdict.told) == (word == "undecided")
    assert f"(cells-0) against random cells: {accuracies[0] - 56:+.2f} points" in verdict.told


@pytest.mark.parametrize("smaller", [40.0, 70.0])
def test_cells_of_our_own_search_that_lose_decide_nothing(smaller: float) -> None:
    found: Found = {("N=7", "25.6K"): (ours(60.0, "epochs 30"),), ("N=5", "25.6K"): (ours(smaller, "epochs 30"),)}
    verdict = verdict_on(EXPERIMENTS["nodes"], outcomes("nodes", found))
    assert verdict.word == ("undecided" if smaller < 60 else "not reproduced")
    assert ("our own search" in verdict.told) == (smaller < 60) and verdict.extent.endswith("after 30 epochs")
