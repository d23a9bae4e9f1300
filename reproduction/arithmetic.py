"""Compare bf16 with fp32, and Nesterov's momentum with none: one network by the paper's recipe in 40 epochs.

The rule is in docs/results/rules.md: each way against bf16 with Nesterov's momentum, by the spread of these runs alone;
and of one set of weights, evaluated in bf16 and in fp32, the mean difference by a t-test on its pairs.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from scipy.special import stdtrit

from reproduction.deviation import LEVEL, Deviations, Repeated
from reproduction.outcomes import KeptResult
from reproduction.verdicts.verdict import Difference, difference

RUNS = "paper-40"  # what their names begin with
HALF = ("auto", "bf16")  # precisions that are bf16 on a GPU
Way = tuple[str, bool]  # precision, Nesterov
BASE: Way = ("bf16", True)
WAYS: dict[Way, str] = {
    BASE: "bf16, Nesterov's momentum",
    ("fp32", True): "fp32",
    ("tf32", True): "fp32 with TF32 convolutions",
    ("bf16", False): "bf16, momentum as the released code has it",
}


@dataclass(frozen=True)
class Pairs:
    """Accuracies in bf16 less those in fp32 of the same weights, in points."""

    differences: tuple[float, ...]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.differences)

    @property
    def smallest(self) -> float:
        """The smallest mean that so many pairs with their spread show."""
        n = len(self.differences)
        return float(stdtrit(n - 1, 1 - LEVEL / 2)) * statistics.stdev(self.differences) / math.sqrt(n)


def find_ways(kept: Sequence[KeptResult]) -> dict[Way, list[KeptResult]]:
    """Group the runs in the order of WAYS; one that was not run is left out."""
    runs = [one for one in kept if one.name.startswith(RUNS)]
    found = {way: [one for one in runs if _way_of(one) == way] for way in WAYS}
    return {way: own for way, own in found.items() if own}


def compare_ways(ways: dict[Way, list[KeptResult]]) -> dict[Way, Difference]:
    accuracies = {way: [100 * one.result.accuracy for one in runs] for way, runs in ways.items()}
    repeated = [Repeated("cifar100", (), tuple(values)) for values in accuracies.values() if len(values) > 1]
    spread = Deviations(repeated).of_all()
    return {
        way: difference(WAYS[way], values, accuracies[BASE], spread)
        for way, values in accuracies.items()
        if way != BASE
    }


def pair_evaluations(kept: Sequence[KeptResult]) -> Pairs:
    """Pair both evaluations of every network that was trained in bf16 and has them."""
    return Pairs(
        tuple(
            100 * (one.result.bf16_accuracy - one.result.accuracy)
            for one in kept
            if one.result.bf16_accuracy is not None and one.config["recipe"].get("precision") in HALF
        )
    )


def write_arithmetic(kept: Sequence[KeptResult]) -> Iterator[str]:
    ways = find_ways(kept)
    if BASE not in ways or len(ways[BASE]) < 2:
        return
    compared, pairs = compare_ways(ways), pair_evaluations(kept)
    yield "## arithmetic\n\nWhat bf16, by which ours are trained, and Nesterov's momentum, which the paper's table has"
    yield "and the released code has not, are worth (ours, not in the paper): 25.6K by the paper's recipe at batch 512"
    yield "in 40 epochs.\n"
    yield "| trained | n | evaluated in fp32 | in bf16 | against the first |\n|---|---|---|---|---|"
    for way, runs in ways.items():
        full = statistics.fmean(100 * one.result.accuracy for one in runs)
        half = statistics.fmean(100 * (one.result.bf16_accuracy or math.nan) for one in runs)
        told = _tell(compared[way]) if way in compared else ""
        yield f"| {WAYS[way]} | {len(runs)} | {full:.2f} | {half:.2f} | {told} |"
    missing = [name for way, name in WAYS.items() if way not in ways]
    yield f"\nNot run: {', '.join(missing)}.\n" if missing else ""
    shown = "a difference" if abs(pairs.mean) >= pairs.smallest else "no difference"
    yield f"Of one set of weights, trained in bf16, evaluation in bf16 is {pairs.mean:+.3f} points from that in fp32 on"
    yield f"average ({len(pairs.differences)} networks, which show {pairs.smallest:.3f}): {shown}.\n"


def _way_of(one: KeptResult) -> Way:
    recipe = one.config["recipe"]
    return "bf16" if recipe["precision"] in HALF else recipe["precision"], recipe["nesterov"]


def _tell(found: Difference) -> str:
    word = "better" if found.wins else "worse" if found.loses else "nothing is shown"
    return f"{found.points:+.2f} ({found.n} and {found.m} show {found.smallest:.2f}): {word}"
