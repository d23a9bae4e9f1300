"""Private latency against ReLUs with the fitted lines, online above offline: what `benchmarks.scaling` measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from sphynx.bench.results import BenchRow, LineFit
from sphynx.report.figures import Chart
from sphynx.report.measured import Scaling
from sphynx.svg.chart_axes import linear_axis
from sphynx.svg.charts import WIDE, Point, Series, curves, stacked
from sphynx.svg.drawing import Drawing, roles
from sphynx.svg.png import save_png

PANELS = {"online": "Online latency", "offline": "Offline latency"}


def scaling_chart(results: Scaling, number: int = 0, note: str = "") -> Chart:
    """`note` ends the caption: where the results were made, if not here."""
    first, machine = results.rows[0], results.machine
    caption = (
        f"Medians of {first.repeats}, two processes over {first.transport} on one machine "
        f"({machine.get('architecture', 'unknown')}, {machine.get('cores', '?')} cores). Random weights, number ranges "
        f"of trained networks. Lines: least squares.{note}"
    )
    return Chart(f"scaling-{number}", "Private latency against ReLUs", caption, partial(scaling_drawing, results))


def scaling_drawing(results: Scaling, width: float = WIDE) -> Drawing:
    rows, fits = results.rows, results.fits
    colour = roles(_name(row) for row in rows)
    panels = [(heading, _panel(heading, phase, rows, fits, colour, width)) for phase, heading in PANELS.items()]
    return stacked("Private latency against ReLUs", panels, width)


def save_scaling(results: Mapping[str, Any], path: Path) -> None:
    """The JSON of `python -m benchmarks.scaling`, as SVG or PNG by the file's name."""
    drawing = scaling_chart(Scaling.from_json(results)).alone()
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix.lower() == ".png":
        save_png(drawing, path)
    else:
        path.write_text(drawing.to_svg())


def _panel(
    title: str, phase: str, rows: Sequence[BenchRow], fits: Sequence[LineFit], colour: Mapping[str, str], width: float
) -> Drawing:
    series = []
    for name, role in colour.items():
        points = [
            Point(row.relus / 1e3, seconds, f"{row.model}, {name}: {seconds:.3f} s {phase}")
            for row in rows
            if _name(row) == name
            for seconds in [row.online_s if phase == "online" else row.offline_s]
        ]
        fit = next(fit for fit in fits if _name(fit) == name and fit.phase == phase)
        ends = (fit.smallest_relus, fit.largest_relus)
        words = f"{fit.intercept_s:.3f} s + {1e6 * fit.s_per_relu:.2f} µs x ReLUs, R² {fit.r_squared:.3f}"
        line = [Point(x / 1e3, fit.intercept_s + fit.s_per_relu * x, f"{name}: {words}") for x in ends]
        series.append(Series(name, points, role, joined=False))
        series.append(Series(words, line, role, marked=False, dashed=True))
    values = [point for each in series for point in each.points]
    return curves(
        title,
        series,
        linear_axis([point.x for point in values], zero=True),
        linear_axis([point.y for point in values], zero=True),
        x_name="ReLUs, thousands",
        y_name="seconds",
        width=width,
        height=240.0,
    )


def _name(row: BenchRow | LineFit) -> str:
    return f"{row.backend}, {row.link}"
