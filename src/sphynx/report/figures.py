"""The charts of a report, each made from what the sources hold; a chart without input is not made at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from typing import Any

from sphynx.bench.results import BenchRow
from sphynx.report.literature import Published, read_published
from sphynx.report.measured import BenchEntry
from sphynx.report.naming import DATA_SETS
from sphynx.report.provenance import made_elsewhere, provenance
from sphynx.report.sources import PlacementRun, Sources, TrainingRun
from sphynx.search.placement.doubt import doubt
from sphynx.space.stream import StreamDesign
from sphynx.svg.chart_axes import linear_axis, log_axis
from sphynx.svg.charts import WIDE, Point, Series, curves, over_epochs, wrapped
from sphynx.svg.drawing import SERIES, Drawing, Mark, Text, roles
from sphynx.units import seconds_text

FEW_EPOCHS = 12  # up to here each one is marked
PEERS = (
    " Hollow: DELPHI's protocol, online, on an Intel i9-10900X, as the Sphynx paper reports (SAFENet's and ImageNet's "
    "by its estimate). Machines and protocols differ: compare ours with each other only."
)
STREAMS = "our stream networks"
OWN_ROLES = ("s0", "s7", "s6")  # in a chart of latencies, where others' points take s1 to s5
OWN_MARKS: tuple[Mark, ...] = ("circle", "square", "triangle", "cross")
QUIET_ROLE = "s6"
QUIET_MARKS: tuple[Mark, ...] = ("square", "triangle", "cross", "circle", "diamond")


@dataclass(frozen=True)
class Chart:
    """`draw` makes it in any width: wide for a page and a file, narrow for a phone."""

    id: str
    title: str
    caption: str
    draw: Callable[[float], Drawing]

    def alone(self, width: float = WIDE) -> Drawing:
        """Draw the chart as a file shows it, with title and caption, since no page around it has them."""
        body, caption = self.draw(width), wrapped(self.caption, width - 12)
        drawing = Drawing(width, body.height + 34 + 16 * len(caption), self.title)
        drawing.add(Text(6, 19, self.title, bold=True, size=15))
        drawing.place(body, 0, 30)
        for number, line in enumerate(caption):
            drawing.add(Text(6, body.height + 30 + 12 + 16 * number, line, "muted", size=11))
        return drawing


def training_charts(runs: Sequence[TrainingRun], present: Mapping[str, Any]) -> Iterator[Chart]:
    """Two charts for every eight runs on the same data: that many colours can be told apart."""
    runs = [run for run in runs if len(run.metrics) > 1]
    together = [
        (data, group[start : start + SERIES])
        for data in dict.fromkeys(_data_key(run) for run in runs)
        for group in [[run for run in runs if _data_key(run) == data]]
        for start in range(0, len(group), SERIES)
    ]
    for number, (data, group) in enumerate(together):
        yield from _training_pair(data, group, number, present)


def _training_pair(data: str, runs: Sequence[TrainingRun], number: int, present: Mapping[str, Any]) -> Iterator[Chart]:
    colour = roles(run.name for run in runs)
    made = made_elsewhere((run.environment for run in runs), present)

    def loss(width: float) -> Drawing:
        series = [_curve(run, colour, "loss", 1.0, "loss") for run in runs]
        return over_epochs("Training loss", series, "training loss (logarithmic)", width, log=True)

    def accuracy(width: float) -> Drawing:
        series = [_curve(run, colour, "train_accuracy", 100.0, "training accuracy, %") for run in runs]
        for run in runs:
            role = colour[run.name]
            if run.accuracy is not None:
                tip = f"{run.name}: {run.accuracy:.2f} % on test images"
                last = [Point(run.metrics[-1]["epoch"], run.accuracy, tip)]
                series.append(Series("", last, role, "diamond", named=False))
            held_out = [
                Point(row["epoch"], 100 * row["held_out_accuracy"]) for row in run.metrics if "held_out_accuracy" in row
            ]
            if held_out:
                series.append(Series("", held_out, role, marked=False, dashed=True, named=False))
        return over_epochs("Accuracy", series, "accuracy, %", width)

    yield Chart(
        f"training-loss-{number}",
        f"{data}: training loss",
        f"Distilled runs add the teacher's term to the loss.{made}",
        loss,
    )
    yield Chart(
        f"training-accuracy-{number}",
        f"{data}: accuracy",
        "Lines: training images, augmented. Diamonds: test images, looked at once, after the last epoch. "
        f"Dashed: held-out training images, where some were held out.{made}",
        accuracy,
    )


def beta_drawing(
    placements: Sequence[Sequence[int]], beta_hat: Sequence[Sequence[float]], width: float, *, note: str = ""
) -> Drawing:
    """The probability of each placement (second index) after each epoch (first); the largest ones are named."""
    final = beta_hat[-1]
    ranked = sorted(range(len(final)), key=lambda place: -final[place])
    series = []
    for rank, place in enumerate(ranked):
        name = f"({','.join(map(str, placements[place]))})"
        points = [
            Point(epoch, row[place], f"{name}, epoch {epoch}: {row[place]:.4f}")
            for epoch, row in enumerate(beta_hat, 1)
        ]
        named = rank < SERIES
        role = f"s{rank}" if named else "grid"
        series.append(Series(name, points, role, marked=len(points) < FEW_EPOCHS, named=named))
    return over_epochs("beta", series, "probability", width, note=note)


def placement_chart(run: PlacementRun, number: int, present: Mapping[str, Any]) -> Chart:
    how = "Algorithm 1" if not run.by_losses else "Algorithm 1, by running losses instead of the paper's gradient"
    caption = f"Softmax of beta after each epoch of {how}. The placement with the largest value is taken."
    if why := doubt(run.placements, run.beta_hat):
        caption += f" INCONCLUSIVE: {why}. Another seed or a longer search may choose another one."
    caption += made_elsewhere([run.environment], present)
    draw = partial(beta_drawing, run.placements, run.beta_hat)
    verdict = " (inconclusive)" if why else ""
    return Chart(f"beta-{number}", f"Where the reduce cells go: {run.name}{verdict}", caption, draw)


def pareto_charts(sources: Sources, present: Mapping[str, Any]) -> Iterator[Chart]:
    """Per data set: accuracy against ReLUs, and against measured private latency, online and in all."""
    finished = [run for run in sources.training if run.accuracy is not None]
    for data in dict.fromkeys(_data_key(run) for run in finished):
        runs = [run for run in finished if _data_key(run) == data]
        peers = [p for p in read_published() if p.data == data]
        caption = "Hollow: published by others. Filled: ours. Diamonds: distilled. Hover for names and sources."
        caption += made_elsewhere((run.environment for run in runs), present)
        if peers or len({run.relus for run in runs}) > 1:
            has_streams = any(isinstance(run.design, StreamDesign) for run in runs)
            yield _pareto(
                f"pareto-relus-{data}",
                f"{data}: accuracy against ReLUs",
                [*_streams(runs, present), *_by_teacher(runs, present)],
                [(p, float(p.relus)) for p in peers if p.relus],
                "ReLUs (logarithmic)",
                caption,
                is_quiet=has_streams,
            )
        timed = [(row, run) for row in sources.private if row.values.online_s and (run := _run_of(row, runs))]
        if timed and (peers or len({run.accuracy for _, run in timed}) > 1):
            machines = dict.fromkeys(f"{row.machine}; {provenance(row.environment, present)}" for row, _ in timed)
            yield _pareto(
                f"pareto-latency-{data}",
                f"{data}: accuracy against private latency, online",
                _by_protocol([(row, run, row.values.online_s) for row, run in timed], present),
                [(p, p.latency_s) for p in peers if p.latency_s],
                "online seconds (logarithmic)",
                f"Filled: ours, online; {' / '.join(machines)}. The hover text has the total.{PEERS if peers else ''}",
            )
            whole = [(row, run, row.values.total_s) for row, run in timed]
            if len({run.accuracy for _, run, _ in whole}) > 1:
                yield _pareto(
                    f"pareto-total-{data}",
                    f"{data}: accuracy against private latency, offline and online",
                    _by_protocol(whole, present),
                    [],
                    "offline and online seconds (logarithmic)",
                    f"Nothing prepared ahead; {' / '.join(machines)}.",
                )


def _streams(runs: Sequence[TrainingRun], present: Mapping[str, Any]) -> list[Series]:
    """Join the stream networks in one bold line, each size at the mean of its seeds, which stands beside it."""
    by_size: dict[int, list[TrainingRun]] = {}
    for run in runs:
        if isinstance(run.design, StreamDesign):
            by_size.setdefault(run.relus, []).append(run)
    points = []
    for relus, alike in sorted(by_size.items()):
        mean = sum(run.accuracy or 0.0 for run in alike) / len(alike)
        points.append(Point(relus, mean, " / ".join(_run_tip(run, present) for run in alike), label=f"{mean:.1f}"))
    return [Series(STREAMS, points, "s0", "diamond", bold=True)] if points else []


def _by_teacher(runs: Sequence[TrainingRun], present: Mapping[str, Any]) -> list[Series]:
    """Show our other networks, grey where streams are what the chart is about."""
    others = [run for run in runs if not isinstance(run.design, StreamDesign)]
    has_streams = len(others) < len(runs)
    found = []
    for name, distilled in (("our other networks" if has_streams else "ours", False), ("ours, distilled", True)):
        points = [
            Point(run.relus, run.accuracy or 0.0, _run_tip(run, present))
            for run in others
            if run.distilled == distilled
        ]
        words = "our others, distilled" if has_streams and distilled else name
        mark: Mark = "diamond" if distilled else "circle"
        role = QUIET_ROLE if has_streams else "s0"
        found.append(Series(words, points, role, mark, joined=False, named=bool(points)))
    return found


def _by_protocol(
    timed: Sequence[tuple[BenchEntry[BenchRow], TrainingRun, float]], present: Mapping[str, Any]
) -> list[Series]:
    """A colour for each way to do ReLUs, a mark for each link and family; streams beside others are dashed."""
    kinds = dict.fromkeys((row.values.link, _family(run)) for row, run, _ in timed)
    mark_of = dict(zip(kinds, cycle(OWN_MARKS), strict=False))
    backends = dict.fromkeys(row.values.backend for row, _, _ in timed)
    role_of = dict(zip(backends, cycle(OWN_ROLES), strict=False))
    families = dict.fromkeys(_family(run) for _, run, _ in timed)
    found = []
    for protocol in dict.fromkeys(row.protocol for row, _, _ in timed):
        for family in families:
            own = [one for one in timed if one[0].protocol == protocol and _family(one[1]) == family]
            if not own:
                continue
            first = own[0][0].values
            points = [Point(seconds, run.accuracy or 0.0, _timed_tip(row, run, present)) for row, run, seconds in own]
            who = family if len(families) > 1 else "ours"
            streams = len(families) > 1 and family == STREAMS
            role, mark = role_of[first.backend], mark_of[first.link, family]
            points.sort(key=lambda p: p.x)
            found.append(Series(f"{who}, {protocol}", points, role, mark, dashed=streams))
    return found


def _family(run: TrainingRun) -> str:
    return STREAMS if isinstance(run.design, StreamDesign) else "our other networks"


def _pareto(
    chart_id: str,
    title: str,
    own: Sequence[Series],
    peers: Sequence[tuple[Published, float]],
    x_name: str,
    caption: str,
    is_quiet: bool = False,
) -> Chart:
    """`is_quiet` draws what others published in grey, told apart by marks and by hovering."""

    def draw(width: float) -> Drawing:
        series = list(own)
        names = dict.fromkeys((p.method, p.distilled) for p, _ in peers)
        colour = roles(method for method, _ in names)
        for method, distilled in names:
            points = [Point(x, p.accuracy, p.tip()) for p, x in peers if (p.method, p.distilled) == (method, distilled)]
            role = QUIET_ROLE if is_quiet else f"s{(int(colour[method][1:]) + 1) % SERIES}"
            name = f"{method}, distilled" if distilled else method
            mark: Mark = "diamond" if distilled else "circle"
            if is_quiet:
                mark = QUIET_MARKS[list(colour).index(method) % len(QUIET_MARKS)]
            points.sort(key=lambda p: p.x)
            series.append(Series(name, points, role, mark, hollow=True, dashed=True))
        points = [point for s in series for point in s.points]
        return curves(
            title,
            series,
            log_axis([p.x for p in points]),
            linear_axis([p.y for p in points]),
            x_name=x_name,
            y_name="test accuracy, %",
            width=width,
            height=400 if width >= WIDE else 320,
        )

    return Chart(chart_id, title, caption, draw)


def _run_of(row: BenchEntry[BenchRow], runs: Sequence[TrainingRun]) -> TrainingRun | None:
    """The run of a benchmark's name, else the most accurate with as many ReLUs: weights do not change latency."""
    model = row.values.model
    named = [run for run in runs if run.name == model or run.name.endswith(f"/{model}")]
    alike = [run for run in runs if run.relus == row.values.relus]
    return max(named or alike, key=lambda run: run.accuracy or 0.0, default=None)


def _timed_tip(row: BenchEntry[BenchRow], run: TrainingRun, present: Mapping[str, Any]) -> str:
    total = f", {seconds_text(row.values.total_s)} in all"
    return (
        f"{row.name}: {seconds_text(row.values.online_s)} online{total}; {run.accuracy:.2f} % by {run.name}, "
        f"{'distilled' if run.distilled else 'not distilled'} "
        f"({row.source}; {row.machine}; {provenance(row.environment, present)})"
    )


def _run_tip(run: TrainingRun, present: Mapping[str, Any]) -> str:
    taught = "distilled" if run.distilled else "not distilled"
    made = provenance(run.environment, present)
    return f"{run.name}: {run.accuracy:.2f} %, {run.relus:,} ReLUs, {taught}, {run.epochs} epochs; {made}"


def _data_key(run: TrainingRun) -> str:
    """The data set that others published on, recognised by its shape; else its own name."""
    shape = (tuple(run.data["image"]), int(run.data["classes"]))
    return next((name for name, known in DATA_SETS.items() if known == shape), run.data_name)


def _curve(run: TrainingRun, colour: Mapping[str, str], key: str, factor: float, what: str) -> Series:
    points = [
        Point(row["epoch"], factor * row[key], f"{run.name}, epoch {row['epoch']}: {what} {factor * row[key]:.4g}")
        for row in run.metrics
    ]
    return Series(run.name, points, colour[run.name], marked=False)
