"""Accuracies as printed, and networks that are equally good."""

from __future__ import annotations

import dataclasses

import pytest
from reproduction.experiments import EXPERIMENTS
from reproduction.verdicts import Verdict
from reproduction.verdicts.levels import rank_correlation
from scipy.stats import spearmanr

from tests.reproduction.planted import Found, ours, outcomes, verdict_on


def test_accuracies_are_judged_in_the_papers_own_setting_only() -> None:
    experiment = EXPERIMENTS["cifar100"]
    assert verdict_on(experiment, outcomes("cifar100", {})).word == "not run"
    other = outcomes("cifar100", {("Sphynx", "25.6K"): (ours(66.1, "epochs 300"),)})
    assert verdict_on(experiment, other).word == "undecided"
    low = outcomes("cifar100", {("Sphynx", "25.6K"): (ours(64.0),)})
    assert verdict_on(experiment, low).word == "not reproduced"
    every = outcomes("cifar100", {("Sphynx", row.label): (ours((row.accuracy or 0) + 0.3),) for row in experiment.rows})
    assert verdict_on(experiment, every).word == "reproduced"
    assert verdict_on(experiment, every[:1] + outcomes("cifar100", {})[1:]).word == "undecided"


@pytest.mark.parametrize(
    ("differs", "word"),
    [
        (("batch_size 512",), "not reproduced"),
        (("batch_size 512", "learning_rate 0.1333", "schedule warmup-cosine", "warmup_epochs 5.0"), "not reproduced"),
        (("single convolutions", "batch_size 512"), "undecided"),
        (("schedule warmup-cosine",), "undecided"),
    ],
)
def test_batch_512_counts_as_the_papers_setting(differs: tuple[str, ...], word: str) -> None:
    low = outcomes("cifar100", {("Sphynx", "25.6K"): (ours(64.0, *differs),)})
    assert verdict_on(EXPERIMENTS["cifar100"], low).word == word


def test_accuracies_are_read_as_the_papers_code_does() -> None:
    """At the best test epoch where it was recorded; both readings are told."""
    run = dataclasses.replace(ours(65.0), best_epoch=65.5)
    judged = verdict_on(EXPERIMENTS["cifar100"], outcomes("cifar100", {("Sphynx", "25.6K"): (run,)}))
    assert judged.word == "not reproduced"
    assert "65.00 at the last epoch, 65.50 at the best (paper 66.13; n=1 and 3 show 0.58)" in judged.told


CHANNELS_DEPTH = EXPERIMENTS["channels-depth"]


def flat(epochs: int, *accuracies: float) -> Verdict:
    labels = [row.label for row in CHANNELS_DEPTH.rows]
    found: Found = {
        ("Sphynx", label): (ours(value, f"epochs {epochs}"),) for label, value in zip(labels, accuracies, strict=False)
    }
    return verdict_on(CHANNELS_DEPTH, outcomes("channels-depth", found))


def test_networks_that_are_equally_good_are_judged_by_their_range() -> None:
    assert flat(200, 60.0, 60.3, 60.5, 60.1, 60.6).word == "reproduced"
    assert flat(200, 60.0, 60.3, 60.5).word == "undecided"  # two networks are missing
    assert flat(200, 60.0, 60.3, 61.0, 60.1, 60.6).word == "undecided"
    assert flat(200, 60.0, 60.3, 62.0, 60.1, 60.6).word == "not reproduced"
    assert flat(200, 60.0).word == "not run"


@pytest.mark.parametrize("highest", [60.5, 69.0])
def test_short_trainings_measure_how_fast_networks_learn(highest: float) -> None:
    verdict = flat(199, 60.0, 60.3, highest, 60.1, 60.2)
    assert verdict.word == "undecided" and "how fast networks learn" in verdict.told


def test_the_papers_order_is_compared_by_rank() -> None:
    printed = [row.accuracy or 0.0 for row in CHANNELS_DEPTH.rows]
    assert "rank correlation with the paper's order: +1.0" in flat(200, *printed).told
    assert "rank correlation with the paper's order: -1.0" in flat(200, *(100 - value for value in printed)).told
    ours_then = (60.99, 63.13, 62.45, 64.23, 64.85)  # after 30 epochs
    assert "rank correlation with the paper's order: -0.6" in flat(30, *ours_then).told
    assert rank_correlation((1.0, 2.0, 2.0, 5.0), (3.0, 3.0, 7.0, 8.0)) == pytest.approx(
        spearmanr((1.0, 2.0, 2.0, 5.0), (3.0, 3.0, 7.0, 8.0)).statistic
    )
