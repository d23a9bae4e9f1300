"""The spread between seeds: a planted one is found, the smallest difference is that of scipy's t-test and shrinks."""

from __future__ import annotations

import copy
import dataclasses
from importlib.metadata import requires
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reproduction.deviation import Deviation, Deviations, Repeated, deviations_of
from reproduction.outcomes import KeptResult, read_kept
from scipy.stats import ttest_ind

from sphynx.train.job import TEACHER_WEIGHTS

RESULTS = Path(__file__).parents[2] / "results"
SHORT, LONG = ("epochs 30",), ("epochs 200",)
POINTS, SEEDS = st.floats(0.01, 10), st.integers(1, 50)


def test_the_smallest_difference_is_where_scipys_t_test_has_five_percent() -> None:
    first, second = np.array([58.2, 58.7, 59.0, 59.6]), np.array([57.5, 57.8, 58.2])
    spread = Deviations([Repeated("cifar100", SHORT, tuple(one.tolist())) for one in (first, second)]).at(
        "cifar100", SHORT
    )
    shown = spread.smallest_difference(len(first), len(second))
    apart = first - first.mean() + shown, second - second.mean()
    assert ttest_ind(*apart).pvalue == pytest.approx(0.05)
    assert (spread.degrees, spread.networks) == (5, 2)


@given(POINTS, SEEDS, SEEDS, SEEDS)
def test_more_seeds_show_smaller_differences(points: float, degrees: int, n: int, m: int) -> None:
    spread, surer = (Deviation(points, known, 1, False) for known in (degrees, degrees + 1))
    shown = spread.smallest_difference(n, m)
    assert 0 < spread.smallest_difference(n + 1, m) < shown
    assert spread.smallest_difference(m, n) == pytest.approx(shown)
    assert surer.smallest_difference(n, m) < shown


@pytest.mark.parametrize("sigma", [0.1, 0.4, 2.0])
def test_a_planted_deviation_is_found_whatever_the_networks_accuracies(sigma: float) -> None:
    random = np.random.default_rng(0)
    means = (40.0, 58.0, 71.0, 75.5)
    planted = [Repeated("cifar100", SHORT, tuple(random.normal(mean, sigma, 300).tolist())) for mean in means]
    found = Deviations(planted).at("cifar100", SHORT)
    assert found.points == pytest.approx(sigma, rel=0.06)  # four deviations of its own
    assert (found.degrees, found.networks, found.of_all_settings) == (4 * 299, 4, False)


def test_other_settings_and_data_count_only_where_none_was_repeated() -> None:
    mean = (*SHORT, "distillation_reduction mean")
    repeated = [
        Repeated("cifar100", SHORT, (60.0, 61.0)),
        Repeated("cifar100", mean, (60.0, 61.0)),
        Repeated("cifar100", LONG, (60.0, 64.0)),
        Repeated("tiny-imagenet", SHORT, (60.0, 69.0)),
    ]
    deviations = Deviations(repeated)
    own = deviations.at("cifar100", SHORT)
    assert own.points == pytest.approx(0.5**0.5) and (own.networks, own.of_all_settings) == (2, False)
    assert deviations.at("cifar100", mean) == own
    other = deviations.at("cifar100", ("epochs 600",))
    assert other == deviations.of_all() and (other.networks, other.degrees) == (4, 4)
    assert deviations and not Deviations([])
    assert deviations.scales() == [("cifar100", SHORT), ("cifar100", LONG), ("tiny-imagenet", SHORT)]


def changed(kept: KeptResult, accuracy: float, seed: int, **config: object) -> KeptResult:
    result = dataclasses.replace(kept.result, accuracy=accuracy)
    return KeptResult(f"{kept.name}-{seed}", result, {**copy.deepcopy(dict(kept.config)), "seed": seed, **config}, {})


def test_kept_runs_are_pooled_by_network_settings_teacher_and_seed() -> None:
    (kept,) = read_kept([RESULTS / "paper" / "short-c5-d5-r01.json"])
    (taught,) = read_kept([RESULTS / "paper" / "distilled-200-of-200.json"])
    runs = [changed(kept, accuracy, seed) for seed, accuracy in ((0, 0.58), (1, 0.60), (1, 0.99))]  # a seed twice
    longer = {**kept.config["recipe"], "epochs": 31}
    runs += [changed(kept, 0.99, 2, recipe=longer)]
    runs += [changed(taught, accuracy, seed, **{TEACHER_WEIGHTS: str(seed)}) for seed, accuracy in ((0, 0.6), (1, 0.9))]
    deviations = deviations_of(runs)
    assert [data for data, _ in deviations.scales()] == ["cifar100"]
    assert deviations.of_all().points == pytest.approx(2**0.5)


def test_the_kept_runs_at_the_short_scale_deviate_as_the_page_says() -> None:
    kept = read_kept([RESULTS])
    (run,) = (one for one in kept if one.name == "short-c5-d5-r01")
    spread = deviations_of(kept).at("cifar100", run.differs)
    assert spread.networks >= 3 and spread.degrees >= 17 and 0.2 < spread.points < 0.5
    row = f"{spread.networks} | {spread.degrees} | {spread.points:.2f} | {spread.smallest_difference(1, 1):.2f} |"
    assert row in (RESULTS.parent / "docs/results/paper.md").read_text()


def test_scikit_learn_brings_scipy() -> None:
    """It is the design extra's, which says nothing of scipy."""
    assert any(need.startswith("scipy") for need in requires("scikit-learn") or [])
