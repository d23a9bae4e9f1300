"""The user's network, first on a report's page: one card with what matters, its private answers, its classes.

What is not known is left out of the card and named below it, with the command that finds it out. A run's own files say
the accuracy; answers, classes and estimates are found out by `api/summarising.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sphynx.bench.results import BenchRow
from sphynx.report.confusion_figure import FEW_CLASSES, confusion_chart, frequent_confusions
from sphynx.report.figures import Chart
from sphynx.report.measured import BenchEntry
from sphynx.report.private_part import memory_text
from sphynx.report.sources import Sources, TrainingRun
from sphynx.report.tables import Picture, Table, Tile
from sphynx.space.files import design_fingerprint
from sphynx.train.confusion import ClassScore
from sphynx.train.scores import Estimate, Scores
from sphynx.units import bytes_text, class_text, percent, seconds_text

Z = 1.959964  # of a normal distribution: 95 % lie within
WORST = 8  # classes in the table of errors


@dataclass(frozen=True)
class Cost:
    """The cost of one private inference."""

    backend: str
    link: str
    online_s: float
    offline_s: float | None
    online_bytes: float | None
    offline_bytes: float | None
    memory: str = ""  # server / client; only where it was measured
    measured: bool = True
    where: str = ""  # the machine

    @property
    def how(self) -> str:
        return "measured" if self.measured else "estimated"


@dataclass(frozen=True)
class Asked:
    """A test image that was asked about privately, both parties on this machine."""

    picture: str  # a data: URL
    truth: str
    answer: str
    probability: float
    exact: bool  # equal to the integer program, bit for bit


@dataclass(frozen=True)
class Judged:
    """An accuracy on test images."""

    accuracy: float
    images: int
    what: str  # that was judged: the fp32 network, the integer program
    seeds: int = 1
    spread: float | None = None  # over the seeds

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's, 95 %: what the accuracy on many more such images may be."""
        if not self.images:
            return 0.0, 1.0
        n, z2 = self.images, Z * Z
        middle = (self.accuracy + z2 / (2 * n)) / (1 + z2 / n)
        half = Z / (1 + z2 / n) * math.sqrt(self.accuracy * (1 - self.accuracy) / n + z2 / (4 * n * n))
        return max(0.0, middle - half), min(1.0, middle + half)

    @property
    def detail(self) -> str:
        low, high = (100 * end for end in self.interval)
        seeds = "" if self.spread is None else f"; ± {100 * self.spread:.2f} over {self.seeds} seeds"
        return f"{low:.1f} to {high:.1f} % at 95 % ({self.images:,} test images){seeds}; {self.what}"


@dataclass(frozen=True)
class NetworkSummary:
    name: str
    what: str  # what it does, in a line
    relus: int
    comparisons: int = 0
    parameters: int | None = None
    judged: Judged | None = None
    cost: Cost | None = None
    asked: tuple[Asked, ...] = ()
    class_names: tuple[str, ...] = ()
    classes: tuple[ClassScore, ...] = ()  # the worst first
    confusion: tuple[tuple[int, ...], ...] = ()  # [class][answer]
    scores: Scores | None = None
    score_charts: tuple[Chart, ...] = ()
    missing: tuple[str, ...] = ()

    def with_missing(self, why: str) -> NetworkSummary:
        return replace(self, missing=(*self.missing, why))

    def tiles(self) -> list[Tile]:
        found = []
        if self.judged is not None:
            found.append(Tile("test accuracy", percent(self.judged.accuracy), self.judged.detail))
        more = f"and {self.comparisons:,} comparisons" if self.comparisons else ""
        size = "" if self.parameters is None else f"{self.parameters:,} parameters"
        found.append(Tile("ReLUs", f"{self.relus:,}", ", ".join(part for part in (more, size) if part)))
        if self.scores is not None and self.scores.classes:
            found += _score_tiles(self.scores)
        if self.cost is not None:
            found += _cost_tiles(self.cost)
        return found

    def pictures(self) -> list[Picture]:
        return [
            Picture(
                asked.picture,
                class_text(asked.answer),
                (
                    f"{100 * asked.probability:.0f} %",
                    f"labelled {class_text(asked.truth)}",
                    *(() if asked.exact else ("NOT exact",)),
                ),
                wrong=asked.answer != asked.truth,
            )
            for asked in self.asked
        ]

    def score_table(self) -> Table | None:
        """Every class by what a physician asks of a test."""
        if self.scores is None or not self.scores.classes:
            return None
        rows = [
            [
                class_text(one.name),
                f"{one.images:,}",
                *(_with_interval(value) for value in (one.sensitivity, one.specificity)),
                (f"{one.auc.value:.3f} ({_interval(one.auc)})"),
            ]
            for one in self.scores.classes
        ]
        note = (
            "Sensitivity: the share of a class's images that are found; specificity: the share of the others that are "
        )
        note += "not taken for it. In brackets 95 % intervals."
        return Table(
            ["class", ">images", ">sensitivity", ">specificity", ">AUC"], rows, [note], "Each class against all others"
        )

    def class_table(self) -> Table | None:
        wrong = [one for one in self.classes if one.accuracy is not None and one.accuracy < 1]
        if not self.classes:
            return None
        rows = [
            [
                class_text(one.name),
                percent(one.accuracy or 0),
                f"{one.images:,}",
                f"{class_text(one.taken_for)} ({one.times:,})" if one.taken_for else "-",
            ]
            for one in wrong[:WORST]
        ]
        perfect = sum(one.accuracy == 1 for one in self.classes)
        notes = [f"{perfect:,} of {len(self.classes):,} classes have no error."]
        if len(wrong) > WORST:
            notes.append(f"The {WORST} worst of {len(wrong):,} with errors.")
        if len(self.class_names) > FEW_CLASSES and self.confusion:
            pairs = ", ".join(
                f"{class_text(a)} for {class_text(b)} ({n:,})"
                for b, a, n in frequent_confusions(self.confusion, self.class_names)
            )
            notes.append(f"Most frequent confusions: {pairs}.")
        return Table(["class", ">accuracy", ">images", "most often confused with"], rows, notes, "Errors by class")

    def chart(self) -> Chart | None:
        if not self.confusion or len(self.class_names) > FEW_CLASSES:
            return None
        return confusion_chart(self.confusion, self.class_names)


def _score_tiles(scores: Scores) -> list[Tile]:
    """Show what accuracy hides where classes are unequal: for networks of few classes."""
    drawn = f"95 % intervals, drawn from {scores.groups:,} {'groups' if scores.groups < scores.images else 'images'}"
    balanced, mcc, error = scores.balanced_accuracy, scores.mcc, scores.calibration_error
    return [
        Tile("balanced accuracy", percent(balanced.value), f"{_interval(balanced, 100)} %; {drawn}"),
        Tile("MCC", f"{mcc.value:.3f}", f"{_interval(mcc)}; {drawn}"),
        Tile("calibration error", f"{error.value:.3f}", f"{_interval(error)}; {drawn}"),
    ]


def _with_interval(share: Estimate) -> str:
    return f"{percent(share.value)} ({_interval(share, 100)})"


def _interval(estimate: Estimate, factor: float = 1.0) -> str:
    digits = 1 if factor > 1 else 3
    return f"{factor * estimate.low:.{digits}f} to {factor * estimate.high:.{digits}f}"


def _cost_tiles(cost: Cost) -> list[Tile]:
    how = "" if cost.measured else "estimated; "
    where = f"; {cost.where}" if cost.where else ""
    offline = "" if cost.offline_s is None else f"; {seconds_text(cost.offline_s)} offline, before there is a picture"
    found = [
        Tile(
            f"private latency, {cost.how}",
            seconds_text(cost.online_s),
            f"online, {cost.backend}, {cost.link}{offline}{where}",
        )
    ]
    if cost.online_bytes is not None:
        before = "" if cost.offline_bytes is None else f"; {bytes_text(cost.offline_bytes)} offline"
        found.append(Tile("traffic", bytes_text(cost.online_bytes), f"{how}online, both directions{before}"))
    if cost.memory:
        found.append(Tile("memory", cost.memory, "server / client, at the peak"))
    return found


def lead_runs(sources: Sources) -> list[TrainingRun]:
    """Runs of the one network that the page is about, one for each seed; none where it is about several networks."""
    own = [run for run in sources.training if run.role == "own" and run.accuracy is not None]
    kinds = {(design_fingerprint(run.design), run.data_name) for run in own}
    return own if len(kinds) == 1 else []


def summary_of(runs: Sequence[TrainingRun], rows: Sequence[BenchEntry[BenchRow]]) -> NetworkSummary:
    """Summarise the network from its runs' own files and benchmarks."""
    first = runs[0]
    accuracies = [(run.accuracy or 0.0) / 100 for run in runs]
    mean = sum(accuracies) / len(accuracies)
    spread = None
    if len(runs) > 1:
        spread = math.sqrt(sum((value - mean) ** 2 for value in accuracies) / (len(runs) - 1))
    tested = first.result.test_images if first.result is not None else None
    images = tested or int(first.data.get("test", 0))
    total = first.design.account.total
    judged = Judged(mean, images, "fp32, final epoch", len(runs), spread)
    what = f"{first.data_name}: {first.design.image} images into {first.design.classes:,} classes"
    name = first.name.split("/")[0]  # of several seeds, or of a design run, that of the folder
    return NetworkSummary(name, what, total.relus, total.comparisons, total.parameters, judged, measured_cost(rows))


def measured_cost(rows: Sequence[BenchEntry[BenchRow]]) -> Cost | None:
    """The fastest online."""
    fastest = min(rows, key=lambda row: row.values.online_s, default=None)
    if fastest is None:
        return None
    best = fastest.values
    return Cost(
        best.backend,
        best.link,
        best.online_s,
        best.offline_s,
        best.online_bytes,
        best.offline_bytes,
        memory_text(best.peak_memory_bytes),
        where=", ".join(fastest.machine.split(", ")[:2]),
    )


def rows_of(name: str, relus: int, sources: Sources) -> list[BenchEntry[BenchRow]]:
    """Benchmarks of this network: by its name, and with as many ReLUs."""
    names = {name, name.rsplit("/", 1)[-1]}
    return [row for row in sources.private if row.values.model in names and row.values.relus == relus]
