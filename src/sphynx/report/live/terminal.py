"""A run as it runs, for a terminal: how far it is and how long it will take, curves of one line each, cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice, pairwise

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from sphynx.report.live.runs import Live, LiveRun, cell_lines, changes
from sphynx.units import duration

BLOCKS = "▁▂▃▄▅▆▇█"
WIDTH = 48  # of a curve, in letters
CHANGES = 4  # of cells, that are listed
PLACES = 6


def live_view(live: Live) -> Group:
    run = live.current
    parts: list[RenderableType] = [_head(live, run), Text()]
    if live.stages:
        parts += [_stages(live), Text()]
    parts.append(_curves(run))
    if run.cells():
        parts += [Text(), _cells(run)]
    if probabilities := run.probabilities():
        parts += [Text(), _places(probabilities)]
    others = [other for other in live.runs if other is not run]
    if others:
        parts += [Text(), Text(f"before: {', '.join(_describe(other) for other in others[-PLACES:])}", style="dim")]
    return Group(*parts)


def sparkline(values: Sequence[float], width: int = WIDTH) -> str:
    """The last letter is the last value; where there are more values than letters, each letter is a mean."""
    if len(values) > width:
        edges = [round(number * len(values) / width) for number in range(width + 1)]
        values = [sum(values[a:b]) / (b - a) for a, b in pairwise(edges)]
    low, high = min(values), max(values)
    scale = (len(BLOCKS) - 1) / (high - low) if high > low else 0.0
    return "".join(BLOCKS[round((value - low) * scale)] for value in values)


def _head(live: Live, run: LiveRun) -> Group:
    table = Table.grid(padding=(0, 2))
    left = live.seconds_left
    ends = "finished" if live.finished else "time left unknown" if left is None else f"{duration(left)} left"
    table.add_row(
        ProgressBar(total=run.epochs, completed=len(run.rows), width=30),
        Text(f"epoch {len(run.rows)} of {run.epochs}"),
        Text(ends),
        Text(f"last update {duration(run.news_s)} ago", style="dim"),
    )
    which = "" if run.name == live.name else f", {run.name}"
    return Group(Text(f"{live.name}: {run.stage}{which}", style="bold"), table)


def _stages(live: Live) -> Text:
    shown = Text()
    running = next((stage.name for stage in live.stages if not stage.finished), "")
    for stage in live.stages:
        mark = "✓" if stage.finished else "▸" if stage.name == running else "·"
        about = "" if stage.finished else "about "
        shown.append(f"{mark} {stage.name} ({about}{duration(stage.seconds)})   ", "bold" if mark == "▸" else "")
    return shown


def _curves(run: LiveRun) -> RenderableType:
    curves = run.curves()
    if not curves:
        return Text("No epoch has ended yet.")
    table = Table.grid(padding=(0, 2))
    for name, values in curves.items():
        table.add_row(
            Text(name.replace("_", " ")), Text(sparkline(values), style="cyan"), Text(_number(name, values[-1]))
        )
    return table


def _cells(run: LiveRun) -> RenderableType:
    cells = run.cells()
    table = Table.grid(padding=(0, 4))
    table.add_row(Text("normal cell now", style="bold"), Text("reduce cell now", style="bold"))
    changed = {(epoch, where) for epoch, where, _ in changes(cells)}
    for number, (normal, reduce) in enumerate(
        zip(cell_lines(cells[-1].normal), cell_lines(cells[-1].reduce), strict=True), 2
    ):
        row = [
            Text(line, style="yellow" if (len(cells), f"{which}, node {number}") in changed else "")
            for which, line in (("normal", normal), ("reduce", reduce))
        ]
        table.add_row(*row)
    lines = [Text(f"epoch {epoch}: {where}: {what}") for epoch, where, what in islice(changes(cells), CHANGES)]
    return Group(table, Text(), Text("changed last:" if lines else "no change yet", style="dim"), *lines)


def _places(probabilities: Mapping[str, Sequence[float]]) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    table.add_row(Text("candidate", style="bold"), Text("probability", style="bold"), Text())
    for name, values in islice(probabilities.items(), PLACES):
        table.add_row(Text(name), Text(sparkline(values), style="cyan"), Text(f"{values[-1]:.3f}"))
    return table


def _describe(run: LiveRun) -> str:
    return f"{run.name} ({len(run.rows)} of {run.epochs}{', finished' if run.finished else ''})"


def _number(name: str, value: float) -> str:
    return f"{100 * value:.2f} %" if "accuracy" in name or name == "held_out" else f"{value:.4g}"
