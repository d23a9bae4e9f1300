"""The deviation between the seeds of one network, and the smallest difference that n of them show.

    d = t(0.975, degrees) * s * sqrt(1/n + 1/m)        a two-sided t-test at 5 %: docs/results/rules.md

s is pooled over all networks that were trained with several seeds by equal settings; its degrees of freedom are their
seeds less the networks. Where no network was trained twice by the settings asked for, s is that of all settings, which
a `Deviation` says. Two runs of one seed count once.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.special import stdtrit  # scikit-learn, which the design extra has, requires scipy

from reproduction.outcomes import KeptResult, without_reading
from sphynx.space.files import design_fingerprint

LEVEL = 0.05


@dataclass(frozen=True)
class Repeated:
    """One network, trained by the same settings with several seeds. Accuracies in percent."""

    data: str
    settings: tuple[str, ...]  # where they are not the paper's, as `Ours.differs` has them
    accuracies: tuple[float, ...]


@dataclass(frozen=True)
class Deviation:
    points: float  # s
    degrees: int
    networks: int
    of_all_settings: bool  # no network was trained twice by those that were asked for

    def smallest_difference(self, n: int, m: int) -> float:
        """Points by which the mean of n runs must differ from that of m others."""
        return float(stdtrit(self.degrees, 1 - LEVEL / 2)) * self.points * math.sqrt(1 / n + 1 / m)


class Deviations:
    """The deviation between seeds by data set and settings. False where no network was trained twice."""

    def __init__(self, repeated: Sequence[Repeated]) -> None:
        self._repeated = repeated

    def __bool__(self) -> bool:
        return bool(self._repeated)

    def at(self, data: str, settings: tuple[str, ...]) -> Deviation:
        """Pool by these settings, whichever of the paper's two losses a student had; else by all."""
        own = [
            one
            for one in self._repeated
            if (one.data, without_reading(one.settings)) == (data, without_reading(settings))
        ]
        return _pool(own or self._repeated, of_all_settings=not own)

    def scales(self) -> list[tuple[str, tuple[str, ...]]]:
        """List the data sets and settings by which a network was trained with several seeds."""
        return list(dict.fromkeys((one.data, without_reading(one.settings)) for one in self._repeated))

    def of_all(self) -> Deviation:
        return _pool(self._repeated, of_all_settings=True)


def _pool(repeated: Sequence[Repeated], *, of_all_settings: bool) -> Deviation:
    degrees = sum(len(one.accuracies) - 1 for one in repeated)
    squares = sum(statistics.variance(one.accuracies) * (len(one.accuracies) - 1) for one in repeated)
    return Deviation(math.sqrt(squares / degrees), degrees, len(repeated), of_all_settings)


def deviations_of(kept: Sequence[KeptResult]) -> Deviations:
    """Pool all kept trainings, whether a table of the paper has their network or not."""
    networks: dict[tuple[str, tuple[str, ...], str, str], dict[int, float]] = {}
    for one in kept:
        if not one.data:
            continue
        network = (one.data, one.differs, design_fingerprint(one.design), one.teacher)
        networks.setdefault(network, {}).setdefault(one.config["seed"], 100 * one.result.accuracy)
    return Deviations(
        [
            Repeated(data, settings, tuple(by_seed.values()))
            for (data, settings, _, _), by_seed in networks.items()
            if len(by_seed) > 1
        ]
    )
