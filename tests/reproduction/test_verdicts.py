"""Verdicts of kept runs on a claim: by pairs of equal settings, by the paper's own setting, or nothing."""

from __future__ import annotations

import dataclasses

import pytest
from reproduction.experiments import EXPERIMENTS
from reproduction.kept_searches import KeptPlacement, RankedCells
from reproduction.outcomes import Ours, Outcome, differing_settings
from reproduction.verdicts import Verdict, verdict_on

from sphynx.report.provenance import provenance
from sphynx.train.recipe import load_recipe

Found = dict[tuple[str, str], tuple[Ours, ...]]


def ours(accuracy: float, *differs: str) -> Ours:
    return Ours("C=5 D=5", "cifar100", 25_600, accuracy, None, 1, 600, provenance({}, {}), differs=differs)


def outcomes(name: str, found: Found) -> list[Outcome]:
    rows = EXPERIMENTS[name].rows
    assert set(found) <= {(row.series, row.label) for row in rows}
    return [Outcome(row, None, kept=found.get((row.series, row.label), ())) for row in rows]


@pytest.mark.parametrize(
    ("separable", "word"), [(64.0, "reproduced"), (66.5, "undecided"), (67.9, "not reproduced"), (None, "not run")]
)
def test_a_comparison_is_judged_by_pairs_of_equal_settings(separable: float | None, word: str) -> None:
    found: Found = {("vanilla", "25.6K"): (ours(67.0, "epochs 80"), ours(60.0))}
    found["separable", "25.6K"] = () if separable is None else (ours(separable, "epochs 80"),)
    verdict = verdict_on(EXPERIMENTS["separable"], outcomes("separable", found))
    assert verdict.word == word
    assert separable is None or f"{67.0 - separable:+.2f} points" in verdict.why
    assert verdict.extent == ("" if separable is None else "at 1 of 4 sizes after 80 epochs")


def test_accuracies_are_judged_in_the_papers_own_setting_only() -> None:
    experiment = EXPERIMENTS["cifar100"]
    assert verdict_on(experiment, outcomes("cifar100", {})).word == "not run"
    other = outcomes("cifar100", {("Sphynx", "25.6K"): (ours(66.1, "batch_size 512"),)})
    assert verdict_on(experiment, other).word == "undecided"
    low = outcomes("cifar100", {("Sphynx", "25.6K"): (ours(64.0),)})
    assert verdict_on(experiment, low).word == "not reproduced"
    every = outcomes("cifar100", {("Sphynx", row.label): (ours((row.accuracy or 0) + 0.3),) for row in experiment.rows})
    assert verdict_on(experiment, every).word == "reproduced"
    assert verdict_on(experiment, every[:1] + outcomes("cifar100", {})[1:]).word == "undecided"


def test_accuracies_are_read_as_the_papers_code_does() -> None:
    """At the best test epoch where it was recorded; both readings are told."""
    run = dataclasses.replace(ours(65.0), best_epoch=65.5)
    judged = verdict_on(EXPERIMENTS["cifar100"], outcomes("cifar100", {("Sphynx", "25.6K"): (run,)}))
    assert judged.word == "undecided" and "65.00 at the last epoch, 65.50 at the best (paper 66.13)" in judged.told


def test_networks_that_are_equally_good_are_judged_by_their_range() -> None:
    experiment = EXPERIMENTS["channels-depth"]
    labels = [row.label for row in experiment.rows]

    def judged(*accuracies: float) -> str:
        found: Found = {
            ("Sphynx", label): (ours(value, "epochs 30"),) for label, value in zip(labels, accuracies, strict=False)
        }
        return verdict_on(experiment, outcomes("channels-depth", found)).word

    assert judged(60.0, 60.3, 60.5, 60.1, 60.6) == "reproduced"
    assert judged(60.0, 60.3, 60.5) == "undecided"  # two networks are missing
    assert judged(60.0, 60.3, 61.0, 60.1, 60.6) == "undecided"
    assert judged(60.0, 60.3, 62.0, 60.1, 60.6) == "not reproduced"
    assert judged(60.0) == "not run"


def test_algorithm_1_is_judged_by_a_whole_grid_of_equal_settings() -> None:
    experiment = EXPERIMENTS["placement-grid"]
    grid = {(0, 1): 58.0, (0, 2): 57.8, (0, 3): 56.0, (1, 2): 56.5, (1, 3): 54.0, (2, 3): 51.0}

    def judged(
        best: tuple[int, ...], estimator: str = "released", without: tuple[int, ...] = (), doubt: str = ""
    ) -> str:
        found: Found = {
            ("D=5", f"({place[0]},{place[1]})"): (ours(value, "epochs 30"),)
            for place, value in grid.items()
            if place != without
        }
        search = KeptPlacement("d5", 5, 5, estimator, 30, best, 0.9, doubt)
        return verdict_on(experiment, outcomes("placement-grid", found), [search]).word

    assert judged((0, 1)) == "reproduced"
    assert judged((0, 2)) == "reproduced"  # as good as the best, within what seeds make
    assert judged((1, 2)) == "not reproduced"
    assert judged((0, 1), estimator="losses") == "undecided"
    assert judged((0, 1), without=(2, 3)) == "undecided"
    assert judged((0, 1), doubt="it settled early") == judged((1, 2), doubt="it settled early") == "undecided"


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
    assert verdict_on(published, outcomes("random-cells", {}), rankings=rankings).why.endswith(": +1.50 points")
    assert verdict_on(own, outcomes("search", {}), rankings=rankings).word == "not reproduced"
    both: Found = {("Sphynx cells", "25.6K"): (ours(60.0),), ("random cells", "25.6K"): (ours(60.1),)}
    assert verdict_on(published, outcomes("random-cells", both), rankings=rankings).word == "undecided"


def test_one_random_cell_decides_nothing() -> None:
    first, *others = (row for row in EXPERIMENTS["random-cells"].rows)

    def judged(trained: int) -> Verdict:
        kept = [(ours(60.0),)] + [(ours(58.0),)] * trained + [()] * (len(others) - trained)
        rows = zip((first, *others), kept, strict=True)
        return verdict_on(EXPERIMENTS["random-cells"], [Outcome(row, None, kept=found) for row, found in rows])

    assert judged(len(others)) == Verdict("reproduced", "25.6K, Sphynx cells against random cells: +2.00 points")
    assert judged(1).word == "undecided" and judged(1).why.endswith("; 1 of 4 random cells were trained")


def test_distillation_is_judged_by_pairs_with_and_without_a_teacher() -> None:
    experiment = EXPERIMENTS["distillation"]
    taught: Found = {("Sphynx, distilled", "25.6K"): (ours(66.0, "epochs 200"),)}
    assert verdict_on(experiment, outcomes("distillation", taught)).word == "not run"
    both: Found = {**taught, ("Sphynx", "25.6K"): (ours(64.0, "epochs 200"),)}
    verdict = verdict_on(experiment, outcomes("distillation", both))
    assert verdict.word == "reproduced" and "+2.00 points" in verdict.why


@pytest.mark.parametrize(("by_mean", "word"), [(66.0, "undecided"), (62.5, "not reproduced"), (64.1, "not reproduced")])
def test_students_are_judged_one_by_one_by_either_loss_of_the_paper(by_mean: float, word: str) -> None:
    """Its formula sums squares, its text says their mean; students of two teachers are not two seeds of one."""
    by_sum = [dataclasses.replace(ours(62.0, "epochs 200"), teacher=t, folders=(t,)) for t in ("first", "second")]
    mean = ours(by_mean, "epochs 200", "distillation_reduction mean")
    taught = (*by_sum, dataclasses.replace(mean, teacher="third", folders=("third",)))
    found: Found = {("Sphynx, distilled", "25.6K"): taught, ("Sphynx", "25.6K"): (ours(64.0, "epochs 200"),)}
    verdict = verdict_on(EXPERIMENTS["distillation"], outcomes("distillation", found))
    assert verdict.word == word and ("our students disagree" in verdict.why) == (word == "undecided")
    assert "distilled (first) against Sphynx: -2.00 points" in verdict.why
    assert f"distilled (third) against Sphynx: {by_mean - 64:+.2f} points" in verdict.why


def test_a_run_by_the_papers_recipe_differs_in_nothing() -> None:
    (row, *_) = EXPERIMENTS["cifar100"].rows
    config = {
        "recipe": load_recipe("paper-cifar100").to_json(),
        "teacher": None,
        "design": {"genotype": {}, "conv_stack": "paper"},
    }
    assert differing_settings(row, config) == ()
    watched = load_recipe("paper-cifar100", {"test_each_epoch": True, "batch_size": 512}).to_json()
    single = {"genotype": {}, "conv_stack": "single"}
    assert differing_settings(row, {**config, "recipe": watched, "design": single}) == (
        "single convolutions",
        "batch_size 512",
    )
    taught = dataclasses.replace(row, options={"teacher": ""})
    assert "a teacher of another kind" in differing_settings(taught, {**config, "teacher": {"width": 64}})


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
    assert verdict.word == word and ("our searches disagree" in verdict.why) == (word == "undecided")
    assert f"(cells-0) against random cells: {accuracies[0] - 56:+.2f} points" in verdict.why


@pytest.mark.parametrize("smaller", [40.0, 70.0])
def test_cells_of_our_own_search_that_lose_decide_nothing(smaller: float) -> None:
    found: Found = {("N=7", "25.6K"): (ours(60.0, "epochs 30"),), ("N=5", "25.6K"): (ours(smaller, "epochs 30"),)}
    verdict = verdict_on(EXPERIMENTS["nodes"], outcomes("nodes", found))
    assert verdict.word == ("undecided" if smaller < 60 else "not reproduced")
    assert ("our own search" in verdict.why) == (smaller < 60) and verdict.extent.endswith("after 30 epochs")
