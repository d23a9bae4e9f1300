"""What kept runs say about a claim: by pairs of equal settings, by the paper's own setting, or nothing."""

from __future__ import annotations

import dataclasses

import pytest

from sphynx.report.paper.experiments import EXPERIMENTS
from sphynx.report.paper.outcomes import Ours, Outcome, differing_settings
from sphynx.report.paper.verdicts import verdict_on
from sphynx.report.provenance import provenance
from sphynx.train.recipe import load_recipe


def ours(accuracy: float, *differs: str) -> Ours:
    return Ours("C=5 D=5", "cifar100", 25_600, accuracy, None, 1, 600, provenance({}, {}), differs=differs)


def outcomes(name: str, found: dict[tuple[str, str], tuple[Ours, ...]]) -> list[Outcome]:
    rows = EXPERIMENTS[name].rows
    assert set(found) <= {(row.series, row.label) for row in rows}
    return [Outcome(row, None, kept=found.get((row.series, row.label), ())) for row in rows]


@pytest.mark.parametrize(
    ("separable", "word"), [(64.0, "reproduced"), (66.5, "undecided"), (67.9, "not reproduced"), (None, "not run")]
)
def test_a_comparison_is_judged_by_pairs_of_equal_settings(separable: float | None, word: str) -> None:
    found = {("vanilla", "25.6K"): (ours(67.0, "epochs 80"), ours(60.0))}
    found["separable", "25.6K"] = () if separable is None else (ours(separable, "epochs 80"),)
    verdict = verdict_on(EXPERIMENTS["separable"], outcomes("separable", found))
    assert verdict.word == word
    assert separable is None or f"{67.0 - separable:+.2f} points" in verdict.why


def test_accuracies_are_judged_in_the_papers_own_setting_only() -> None:
    experiment = EXPERIMENTS["cifar100"]
    assert verdict_on(experiment, outcomes("cifar100", {})).word == "not run"
    other = outcomes("cifar100", {("Sphynx", "25.6K"): (ours(66.1, "batch_size 512"),)})
    assert verdict_on(experiment, other).word == "undecided"
    low = outcomes("cifar100", {("Sphynx", "25.6K"): (ours(64.0),)})
    assert verdict_on(experiment, low).word == "not reproduced"
    every = outcomes("cifar100", {("Sphynx", row.label): (ours(row.accuracy + 0.3),) for row in experiment.rows})
    assert verdict_on(experiment, every).word == "reproduced"
    assert verdict_on(experiment, every[:1] + outcomes("cifar100", {})[1:]).word == "undecided"


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
