"""Ways to train one network are compared as scipy's t-tests do."""

from __future__ import annotations

import copy
import dataclasses
from pathlib import Path

import pytest
from reproduction.arithmetic import BASE, Pairs, compare_ways, find_ways, pair_evaluations, write_arithmetic
from reproduction.outcomes import KeptResult, differing_settings, read_kept
from scipy.stats import ttest_1samp, ttest_ind

RESULTS = Path(__file__).parents[2] / "results"
KEPT = read_kept([RESULTS / "paper" / "paper-40-seed0.json"])[0]


def planted(name: str, accuracy: float, half: float | None = None, **changed: object) -> KeptResult:
    config = copy.deepcopy(dict(KEPT.config))
    config["recipe"] |= changed
    result = dataclasses.replace(
        KEPT.result, accuracy=accuracy / 100, bf16_accuracy=None if half is None else half / 100
    )
    return KeptResult(name, result, config, KEPT.environment)


def test_a_way_is_shown_to_differ_where_scipys_t_test_has_five_percent() -> None:
    base, plain = (57.2, 57.5, 57.3), (56.6, 56.4, 56.3)
    runs = [planted(f"paper-40-seed{n}", value) for n, value in enumerate(base)]
    runs += [planted(f"paper-40-x-seed{n}", value, nesterov=False) for n, value in enumerate(plain)]
    (found,) = compare_ways(find_ways(runs)).values()
    apart = [value - found.points - found.smallest for value in plain]
    assert ttest_ind(base, apart).pvalue == pytest.approx(0.05)
    assert found.loses and (found.n, found.m) == (3, 3)


def test_pairs_differ_where_scipys_t_test_on_them_has_five_percent() -> None:
    pairs = Pairs((0.01, 0.10, -0.03, 0.07))
    assert ttest_1samp([value - pairs.mean + pairs.smallest for value in pairs.differences], 0).pvalue == pytest.approx(
        0.05
    )


def test_only_networks_trained_in_bf16_with_both_evaluations_are_paired() -> None:
    runs = [planted("a", 50, 51), planted("b", 50), planted("c", 50, 53, precision="fp32"), planted("d", 50, 49)]
    assert pair_evaluations(runs).differences == pytest.approx((1, -1))


def test_runs_in_fp32_are_not_taken_for_those_in_bf16() -> None:
    """They would count as one more seed of the same network, and its spread."""
    single = planted("paper-40-fp32-seed0", 57.3, precision="fp32")
    assert single.differs == (*KEPT.differs, "fp32, where others are in bf16")
    assert differing_settings("cifar100", planted("a", 50, precision="bf16").config) == KEPT.differs


def test_what_was_not_run_is_named() -> None:
    ways = find_ways(read_kept([RESULTS]))
    told = "\n".join(write_arithmetic([one for runs in ways.values() for one in runs]))
    assert len(ways[BASE]) == 3 and "Not run: fp32 with TF32 convolutions." in told
    assert list(write_arithmetic([])) == []
