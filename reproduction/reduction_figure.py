"""docs/images/reduced.svg: the paper's Pareto figure, with every method that was run here beside what is cited; below
it accuracy against private latency, where that was measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from reproduction.experiments import EXPERIMENTS
from reproduction.kept_reductions import KeptReduction, read_reductions, read_teacher
from reproduction.outcomes import read_kept
from reproduction.reduced_latency import BACKEND_NAMES, Latency, method_of, modes_of, read_latencies
from reproduction.verdicts.levels import in_the_papers_setting
from sphynx.bench.results import BenchRow
from sphynx.report.literature import Published, read_published
from sphynx.report.naming import DATA_SETS
from sphynx.space.reference import ResNet18Design
from sphynx.svg.chart_axes import linear_axis, log_axis
from sphynx.svg.charts import WIDE, Point, Series, curves, stacked
from sphynx.svg.drawing import Drawing, Mark, roles

TITLE = "CIFAR-100: accuracy of networks cited and run here"
RELUS = (10_000, 600_000)
# The names that the papers' methods have in literature.csv; the others are ours.
PAPERS = {
    "delphi": "DELPHI", "safenet": "SAFENet", "deepreduce": "DeepReDuce", "cryptonas": "CryptoNAS", "snl": "SNL",
    "senet": "SENet", "autorep": "AutoReP",
}  # fmt: skip
DATA, SPHYNX = "cifar100", "Sphynx"


def draw_reductions(results: Path) -> Drawing:
    measured = read_latencies(results)
    panels = [("CIFAR-100: accuracy against ReLUs", _draw_relus(results))]
    for link, backend in modes_of(measured) if measured else ():
        known = (
            [one for one in measured.networks if any(accuracy is not None for accuracy in one.accuracies)]
            if measured
            else []
        )
        if known:
            panels.append(
                (f"Accuracy against private latency: {BACKEND_NAMES[backend]} over {link}", _draw(known, link, backend))
            )
    return stacked(TITLE, panels, WIDE)


def _draw(known: Sequence[Latency], link: str, backend: str) -> Drawing:
    """Accuracy against milliseconds online, of those that were run here alone."""
    methods = dict.fromkeys(method_of(name) for one in known for name in one.names)
    colour = roles(methods)
    series = []
    for method in methods:
        points = [
            Point(1e3 * row.online_s, 100 * accuracy, _tell(name, accuracy, one, row))
            for one in known
            for row in one.rows
            for name, accuracy in zip(one.names, one.accuracies, strict=True)
            if accuracy is not None and (row.link, row.backend, method_of(name)) == (link, backend, method)
        ]
        mark: Mark = "square" if method in PAPERS else "circle"
        series.append(Series(PAPERS.get(method, method), points, colour[method], mark, joined=False))
    points = [point for one in series for point in one.points]
    x, y = log_axis([point.x for point in points]), linear_axis([point.y for point in points])
    return curves(TITLE, series, x, y, x_name="online, ms (logarithmic)", y_name="test accuracy, %")


def _tell(name: str, accuracy: float, one: Latency, row: BenchRow) -> str:
    times = f"{1e3 * row.online_s:.0f} ms online, {row.offline_s:.2f} s offline"
    return f"{name}: {100 * accuracy:.2f} %, {times}, {one.relus:,} ReLUs, {one.squares:,} squares"


def _draw_relus(results: Path) -> Drawing:
    reductions = read_reductions(results)
    cited = [row for row in read_published() if row.data == DATA and row.relus and RELUS[0] <= row.relus <= RELUS[1]]
    ran = dict.fromkeys(PAPERS.get(one.method, one.method) for kept in reductions for one in kept.tried)
    names = [*dict.fromkeys(row.method for row in cited), *ran]
    colour = roles(names)
    series = [_run_here(name, reductions, colour[name]) for name in ran]
    series += _sphynx(results, colour[SPHYNX])
    series += [_original(results)] if read_teacher(results) else []
    series += [_cited(name, cited, colour[name]) for name in dict.fromkeys(row.method for row in cited)]
    points = [point for one in series for point in one.points]
    x, y = log_axis([point.x for point in points]), linear_axis([point.y for point in points])
    note = "Hollow: cited, as their authors trained them. Filled: run here; Sphynx by the paper's recipe, "
    note += "reductions by one recipe from one teacher." if reductions else "no reduction yet."
    return curves(TITLE, series, x, y, x_name="ReLUs (logarithmic)", y_name="test accuracy, %", note=note)


def _run_here(name: str, reductions: Sequence[KeptReduction], role: str) -> Series:
    points = [
        Point(
            one.counts.relus,
            100 * one.accuracy,
            f"{name}, run here: {100 * one.accuracy:.2f} %, {one.counts.relus:,} ReLUs, {one.counts.squares:,} "
            f"squares, {kept.epochs(one)} epochs, seed {kept.asked.seed}",
        )
        for kept in reductions
        for one in kept.tried
        if PAPERS.get(one.method, one.method) == name
    ]
    mark: Mark = "square" if name in PAPERS.values() else "circle"
    return Series(f"{name}, run here", sorted(points, key=lambda point: point.x), role, mark, joined=False)


def _sphynx(results: Path, role: str) -> list[Series]:
    """The paper's own networks, those that were trained in its setting."""
    kept = [ours for row in EXPERIMENTS[DATA].rows for file in read_kept([results]) if (ours := file.of(row, {}))]
    points = [
        Point(one.relus, one.accuracy, f"{one.network}, run here: {one.accuracy:.2f} %, {one.epochs} epochs")
        for one in kept
        if in_the_papers_setting(one.differs)
    ]
    return [Series(f"{SPHYNX}, run here", points, role, "square", joined=False)] if points else []


def _original(results: Path) -> Series:
    teacher = read_teacher(results)
    assert teacher is not None
    relus = ResNet18Design(64, *DATA_SETS[DATA], "small").relus
    tip = f"ResNet18, the original: {100 * teacher.result.accuracy:.2f} %, {relus:,} ReLUs"
    return Series("the original", [Point(relus, 100 * teacher.result.accuracy, tip)], "ink", "triangle")


def _cited(name: str, cited: Sequence[Published], role: str) -> Series:
    points = [Point(row.relus or 0, row.accuracy, row.tip()) for row in cited if row.method == name]
    points = sorted(points, key=lambda point: (point.x, point.y))
    return Series(name, points, role, "diamond", hollow=True, joined=False)
