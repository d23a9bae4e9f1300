"""A run as it runs, as a page: one file that is written anew, and that the browser loads again by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from sphynx.report.figures import Chart
from sphynx.report.live.runs import Live, LiveRun, changes
from sphynx.report.page import Section, chart_part, render, table_part
from sphynx.report.tables import Table, Tile
from sphynx.space.cell_svg import cell_svg
from sphynx.svg.charts import Point, Series, over_epochs
from sphynx.svg.drawing import SERIES, Drawing
from sphynx.units import duration

CHANGES = 12
PERCENT = ("train_accuracy", "held_out_accuracy", "test_accuracy", "held_out")


def live_page(live: Live, every_s: float) -> str:
    run, left = live.current, live.seconds_left
    ends = "finished" if live.finished else "unknown" if left is None else duration(left)
    tiles = [
        Tile("epoch", f"{len(run.rows)} of {run.epochs}", f"{run.stage}: {run.name}"),
        Tile("time left", ends, "" if live.finished else "from the last epochs"),
        Tile("last update", f"{duration(run.news_s)} ago", "when an epoch ended"),
    ]
    sections = [Section("curves", "Curves", [chart_part(chart) for chart in _charts(run)])]
    if run.cells():
        sections.append(Section("cells", "Cells now", _cells(run)))
    if live.stages:
        rows = [[stage.name, "finished" if stage.finished else "", duration(stage.seconds)] for stage in live.stages]
        sections.append(Section("stages", "Stages", [table_part(Table(["stage", "", ">took, or will take"], rows))]))
    title = f"{live.name}, {'finished' if live.finished else 'running'}"
    return render(
        title=title,
        subtitle="This page reloads itself while the run goes on.",
        tiles=tiles,
        sections=[section for section in sections if section.parts],
        refresh_s=0.0 if live.finished else every_s,
    )


def write_live_page(live: Live, path: Path, every_s: float) -> None:
    """At once: the browser never loads half a page."""
    fresh = path.with_name(path.name + ".new")
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh.write_text(live_page(live, every_s), encoding="utf-8")
    fresh.replace(path)


def _charts(run: LiveRun) -> list[Chart]:
    curves = {name: values for name, values in run.curves().items() if len(values) > 1}
    accuracies = {name: [100 * value for value in values] for name, values in curves.items() if name in PERCENT}
    found = []
    if "loss" in curves:
        found.append(_chart("loss", "Loss", {"loss": curves["loss"]}, "loss (logarithmic)", log=True))
    if accuracies:
        found.append(_chart("accuracy", "Accuracy", accuracies, "accuracy, %"))
    likeliest = dict(islice(run.probabilities().items(), SERIES))
    if any(len(values) > 1 for values in likeliest.values()):
        found.append(_chart("beta", "Probability of the candidates", likeliest, "probability"))
    return found


def _chart(name: str, title: str, curves: Mapping[str, Sequence[float]], y_name: str, *, log: bool = False) -> Chart:
    series = [
        Series(
            curve.replace("_", " "),
            [Point(epoch, value, f"epoch {epoch}: {value:.4g}") for epoch, value in enumerate(values, 1)],
            f"s{number}",
            marked=False,
        )
        for number, (curve, values) in enumerate(curves.items())
    ]

    def draw(width: float) -> Drawing:
        return over_epochs(title, series, y_name, width, log=log)

    return Chart(name, title, "", draw)


def _cells(run: LiveRun) -> list[Mapping[str, Any]]:
    cells = run.cells()
    drawn = [cell_svg(getattr(cells[-1], which), title=f"{which} cell") for which in ("normal", "reduce")]
    card = {
        "kind": "card",
        "id": "cells-now",
        "title": f"After epoch {len(cells)}",
        "facts": [],
        "wide": "",
        "narrow": "",
        "cells": drawn,
    }
    rows = [[str(epoch), where, what] for epoch, where, what in islice(changes(cells), CHANGES)]
    table = Table(["epoch", "where", "what changed"], rows, () if rows else ("No cell changed yet.",), "Changed last")
    return [card, table_part(table)]
