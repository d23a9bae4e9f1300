"""The charts of a report, each made from what the sources hold; a chart without input is not made at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sphynx.report.axes import Axis, bytes_text, epoch_axis, linear_axis, log_axis, seconds_text
from sphynx.report.charts import WIDE, Point, Series, curves, wrapped
from sphynx.report.drawing import SERIES, Drawing, Key, Mark, Text, roles
from sphynx.report.experiments import DATA_SETS
from sphynx.report.provenance import made_elsewhere, provenance
from sphynx.report.published import Published, read_published
from sphynx.report.sources import PlacementRun, PrivateRow, RangeCheck, Sources, TrainingRun
from sphynx.report.spans import Panel, Piece, SpanRow, Tick, spans

FEW_EPOCHS = 12  # up to here each one is marked
PHASES = ("offline", "online")


@dataclass(frozen=True)
class Chart:
    """`draw` makes it in any width: wide for a page and a file, narrow for a phone."""

    id: str
    title: str
    caption: str
    draw: Callable[[float], Drawing]

    def alone(self, width: float = WIDE) -> Drawing:
        """As a file shows it, where no page around it has its title and caption."""
        body, caption = self.draw(width), wrapped(self.caption, width - 12)
        drawing = Drawing(width, body.height + 34 + 16 * len(caption), self.title)
        drawing.add(Text(6, 19, self.title, bold=True, size=15))
        drawing.place(body, 0, 30)
        for number, line in enumerate(caption):
            drawing.add(Text(6, body.height + 30 + 12 + 16 * number, line, "muted", size=11))
        return drawing


def training_charts(runs: Sequence[TrainingRun], present: Mapping[str, Any]) -> Iterator[Chart]:
    """Two charts for every eight runs: that many colours can be told apart."""
    runs = [run for run in runs if len(run.metrics) > 1]
    for start in range(0, len(runs), SERIES):
        yield from _training_pair(runs[start : start + SERIES], start // SERIES, present)


def _training_pair(runs: Sequence[TrainingRun], number: int, present: Mapping[str, Any]) -> Iterator[Chart]:
    colour = roles(run.name for run in runs)
    made = made_elsewhere((run.environment for run in runs), present)

    def loss(width: float) -> Drawing:
        series = [_curve(run, colour, "loss", 1.0, "loss") for run in runs]
        return _over_epochs("Training loss", series, "training loss (logarithmic)", width, log=True)

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
        return _over_epochs("Accuracy", series, "accuracy, %", width)

    yield Chart(
        f"training-loss-{number}", "Training loss", f"Distilled runs add the teacher's term to the loss.{made}", loss
    )
    yield Chart(
        f"training-accuracy-{number}", "Accuracy",
        "Lines: training images, augmented. Diamonds: test images, looked at once, after the last epoch. "
        f"Dashed: held-out training images, where some were held out.{made}",
        accuracy,
    )  # fmt: skip


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
    return _over_epochs("beta", series, "probability", width, note=note)


def placement_chart(run: PlacementRun, number: int, present: Mapping[str, Any]) -> Chart:
    caption = "Softmax of beta after each epoch of Algorithm 1. The placement with the largest value is taken."
    caption += made_elsewhere([run.environment], present)
    draw = partial(beta_drawing, run.placements, run.beta_hat)
    return Chart(f"beta-{number}", f"Where the reduce cells go: {run.name}", caption, draw)


def pareto_charts(sources: Sources, present: Mapping[str, Any]) -> Iterator[Chart]:
    """Per data set: accuracy against ReLUs, and against measured private latency."""
    finished = [run for run in sources.training if run.accuracy is not None]
    for data in dict.fromkeys(_data_key(run) for run in finished):
        runs = [run for run in finished if _data_key(run) == data]
        peers = [p for p in read_published() if p.data == data]
        own = [Point(run.relus, run.accuracy or 0.0, _run_tip(run, present)) for run in runs]
        caption = (
            "Hollow: published by others. Hover for name, value, source and whether it was distilled. Filled: ours."
        )
        caption += made_elsewhere((run.environment for run in runs), present)
        if len(own) + len(peers) > 1:
            yield _pareto(
                f"pareto-relus-{data}", f"{data}: accuracy against ReLUs", own,
                [(p, float(p.relus)) for p in peers if p.relus], "ReLUs (logarithmic)", caption,
            )  # fmt: skip
        timed = [point for row in sources.private for point in _timed(row, runs)]
        if timed:
            yield _pareto(
                f"pareto-latency-{data}", f"{data}: accuracy against private latency", timed,
                [(p, p.latency_s) for p in peers if p.latency_s], "online seconds (logarithmic)",
                "Hollow: DELPHI's protocol on an Intel i9-10900X, as the Sphynx paper reports. Ours: the machine that "
                "the hover text names; machines differ, so only ours can be compared with each other.",
            )  # fmt: skip


def _pareto(
    chart_id: str, title: str, own: Sequence[Point], peers: Sequence[tuple[Published, float]], x_name: str, caption: str
) -> Chart:
    def draw(width: float) -> Drawing:
        series = [Series("ours", sorted(own, key=lambda p: p.x), "s0", joined=False)]
        names = dict.fromkeys((p.method, p.distilled) for p, _ in peers)
        colour = roles(method for method, _ in names)
        for method, distilled in names:
            points = [Point(x, p.accuracy, p.tip()) for p, x in peers if (p.method, p.distilled) == (method, distilled)]
            role = f"s{(int(colour[method][1:]) + 1) % SERIES}"
            name = f"{method}, distilled" if distilled else method
            mark: Mark = "diamond" if distilled else "circle"
            points.sort(key=lambda p: p.x)
            series.append(Series(name, points, role, mark, hollow=True, dashed=True))
        points = [point for s in series for point in s.points]
        return curves(
            title, series, log_axis([p.x for p in points]), linear_axis([p.y for p in points]),
            x_name=x_name, y_name="test accuracy, %", width=width, height=400 if width >= WIDE else 320,
        )  # fmt: skip

    return Chart(chart_id, title, caption, draw)


def timeline_chart(row: PrivateRow, number: int) -> Chart:
    def draw(width: float) -> Drawing:
        parties = list(dict.fromkeys(str(piece["party"]) for piece in row.timeline))
        colour = roles(_kind(str(piece["name"])) for piece in row.timeline)
        panels = []
        for phase in PHASES:
            pieces = [piece for piece in row.timeline if piece["phase"] == phase]
            if not pieces:
                continue
            first = min(float(piece["start_s"]) for piece in pieces)
            rows = [
                SpanRow(
                    party,
                    [
                        Piece(
                            float(p["start_s"]) - first, float(p["end_s"]) - first, colour[_kind(str(p["name"]))],
                            f"{party}, {phase}: {p['name']}, {seconds_text(float(p['end_s']) - float(p['start_s']))}",
                        )
                        for p in pieces
                        if str(p["party"]) == party
                    ],
                )
                for party in parties
            ]  # fmt: skip
            panels.append(Panel(phase, rows, seconds_text))
        key = [Key(name, role) for name, role in colour.items()]
        return spans(f"timeline of {row.name}", panels, key, width=width)

    caption = "What each party is at, waiting for the other included. Each phase has its own axis and starts at 0."
    caption += f" Machine: {row.machine}."
    return Chart(f"timeline-{number}", f"One private inference: {row.name}", caption, draw)


def traffic_chart(row: PrivateRow, number: int) -> Chart:
    def draw(width: float) -> Drawing:
        panels = []
        for phase in PHASES:
            layers = [layer for layer in row.layers if layer["phase"] == phase]
            rows = []
            for layer in layers:
                sent, received = float(layer["sent_bytes"]), float(layer["received_bytes"])
                pieces = [
                    Piece(0.0, sent, "s0", f"{layer['name']}, {phase}: {bytes_text(sent)} sent"),
                    Piece(sent, sent + received, "s1", f"{layer['name']}, {phase}: {bytes_text(received)} received"),
                ]
                rows.append(SpanRow(str(layer["name"]), pieces, total=bytes_text(sent + received)))
            if rows:
                panels.append(Panel(phase, rows, bytes_text))
        key = [Key("sent", "s0"), Key("received", "s1")]
        return spans(f"traffic of {row.name}", panels, key, width=width)

    caption = "Bytes by layer, as the party that measured counted them. The two phases have their own axes."
    caption += f" Machine: {row.machine}."
    return Chart(f"traffic-{number}", f"Traffic by layer: {row.name}", caption, draw)


def range_chart(check: RangeCheck, number: int) -> Chart:
    def draw(width: float) -> Drawing:
        rows = []
        for layer in check.layers:
            given, used, bound = (int(layer[key]) for key in ("range_bits", "used_bits", "bound_bits"))
            pieces = [Piece(0, given, "s6", f"{layer['name']}: range of {given} bits", True)] if given else []
            pieces.append(Piece(0, used, "s0", f"{layer['name']}: {used} bits used by {check.images:,} images"))
            worst = Tick(bound, "s5", "diamond", f"{layer['name']}: no image can need more than {bound} bits")
            rows.append(SpanRow(str(layer["name"]), pieces, [worst]))
        key = [Key("used", "s0"), Key("range", "s6", hollow=True), Key("worst case", "s5", "diamond")]
        return spans(f"ranges of {check.name}", [Panel("", rows, lambda bits: f"{bits:g} bits")], key, width=width)

    caption = "A linear map without a range is a link of a chain, which may wrap around the ring."
    return Chart(f"ranges-{number}", f"Use of number ranges: {check.name}", caption, draw)


def _timed(row: PrivateRow, runs: Sequence[TrainingRun]) -> list[Point]:
    """A benchmark's points: the run of its name, else every run with as many ReLUs. Weights do not change latency."""
    online = row.number("online_s")
    if not online:
        return []
    model = row.values["model"]
    named = [run for run in runs if run.name == model or run.name.endswith(f"/{model}")]
    found = named or [run for run in runs if run.relus == row.values.get("relus")]
    return [
        Point(
            online,
            run.accuracy or 0.0,
            f"{row.name}: {online:.3g} s online; {run.accuracy:.2f} % by {run.name}, "
            f"{'distilled' if run.distilled else 'not distilled'} ({row.source}; {row.machine})",
        )
        for run in found
    ]


def _run_tip(run: TrainingRun, present: Mapping[str, Any]) -> str:
    taught = "distilled" if run.distilled else "not distilled"
    made = provenance(run.environment, present)
    return f"{run.name}: {run.accuracy:.2f} %, {run.relus:,} ReLUs, {taught}, {len(run.metrics)} epochs; {made}"


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


def _over_epochs(
    title: str, series: Sequence[Series], y_name: str, width: float, *, log: bool = False, note: str = ""
) -> Drawing:
    values = [point.y for s in series for point in s.points]
    y: Axis = log_axis(values) if log else linear_axis(values, zero=True)
    x = epoch_axis(max(point.x for s in series for point in s.points), width)
    height = 280.0 if width >= WIDE else 240.0
    return curves(title, series, x, y, x_name="epoch", y_name=y_name, width=width, height=height, note=note)


def _kind(section: str) -> str:
    """What a section of the protocol is about, by its name: pieces of one kind share a colour."""
    if section.endswith("/mask"):
        return "encrypted masks"
    if section.endswith("activation"):
        return "ReLU"
    return {"pixels": "image", "logits": "logits"}.get(section.rpartition(".")[2], "linear maps")
