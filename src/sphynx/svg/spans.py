"""Horizontal charts: named rows with pieces along one axis. A timeline, traffic by layer, bits of a range are such."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sphynx.svg.chart_axes import Axis, Frame, linear_axis
from sphynx.svg.charts import SIZE, WIDE, wrapped
from sphynx.svg.drawing import Box, Dot, Drawing, Key, Line, Mark, Text, legend, text_width

ROW, THICK = 26.0, 15.0
HALF_A_TICK = 28.0  # room for the name of the last tick, which is centred on it


@dataclass(frozen=True)
class Piece:
    start: float
    end: float
    role: str
    tip: str
    hollow: bool = False


@dataclass(frozen=True)
class Tick:
    """A mark on a row."""

    at: float
    role: str
    mark: Mark
    tip: str


@dataclass(frozen=True)
class SpanRow:
    name: str
    pieces: Sequence[Piece]
    marks: Sequence[Tick] = ()
    total: str = ""  # written behind the row


@dataclass(frozen=True)
class Panel:
    title: str
    rows: Sequence[SpanRow]
    unit: Callable[[float], str]


def spans(title: str, panels: Sequence[Panel], key: Sequence[Key], *, width: float = WIDE, note: str = "") -> Drawing:
    """Panels below each other, each with an axis of its own, all starting at 0."""
    names = legend(key, width - 12)
    note_lines = wrapped(note, width - 12)
    drawing = Drawing(width, names.height + 8, title)
    drawing.place(names, 6, 0)
    longest = max(text_width(row.name, SIZE) for panel in panels for row in panel.rows)
    left = min(longest + 16, width * 0.36)
    behind = max(text_width(row.total, 11) for panel in panels for row in panel.rows) + 10
    for panel in panels:
        _panel(drawing, panel, left, width - left - max(behind, HALF_A_TICK))
    for number, line in enumerate(note_lines):
        drawing.add(Text(6, drawing.height + 12 + 16 * number, line, "muted", size=11))
    drawing.height += 16 * len(note_lines) + 4
    return drawing


def _panel(drawing: Drawing, panel: Panel, left: float, width: float) -> None:
    top = drawing.height + (24 if panel.title else 4)
    if panel.title:
        drawing.add(Text(6, top - 9, panel.title, bold=True, size=12.5))
    ends = [p.end for row in panel.rows for p in row.pieces] + [m.at for row in panel.rows for m in row.marks]
    longest = max(*ends, 0.0) or 1.0
    ticks = linear_axis([0.0, longest], zero=True, ticks=max(2, int(width // 90))).ticks
    axis = Axis(0.0, longest, tuple(tick for tick in ticks if tick <= longest * (1 + 1e-9)))
    height = ROW * len(panel.rows)
    frame = Frame(drawing, left, top, width, height, axis, None)
    last = -1.0
    for tick in axis.ticks:
        x, text = frame.x_at(tick), panel.unit(tick) if tick else "0"
        drawing.add(Line(((x, top), (x, top + height)), "grid"))
        half = text_width(text, 11) / 2
        if x - half > last + 4:
            drawing.add(Text(x, top + height + 15, text, "muted", "middle", 11))
            last = x + half
    for number, row in enumerate(panel.rows):
        y = top + number * ROW + (ROW - THICK) / 2
        drawing.add(Text(left - 8, y + THICK / 2 + SIZE * 0.35, _fit(row.name, left - 12), "ink", "end", SIZE))
        for piece in (piece for piece in row.pieces if piece.end > piece.start):
            x = frame.x_at(piece.start)
            # A hair of room keeps neighbours apart; a piece too short to see still gets a pixel.
            wide = max(frame.x_at(piece.end) - x - 0.6, 1.0)
            drawing.add(Box(x, y, wide, THICK, piece.role, 1.5, piece.hollow, piece.tip))
        for mark in row.marks:
            drawing.add(Dot(frame.x_at(mark.at), y + THICK / 2, mark.role, mark.mark, 5, False, mark.tip))
        if row.total:
            end = max([frame.x_at(p.end) for p in row.pieces], default=left)
            drawing.add(Text(end + 6, y + THICK / 2 + 4, row.total, "muted", "start", 11))
    drawing.add(Line(((left, top + height), (left + width, top + height)), "muted"))
    drawing.height = top + height + 26


def _fit(name: str, room: float) -> str:
    if text_width(name, SIZE) <= room:
        return name
    kept = len(name)
    while kept > 3 and text_width(_without_middle(name, kept), SIZE) > room:
        kept -= 1
    return _without_middle(name, kept)


def _without_middle(name: str, kept: int) -> str:
    """Names of layers differ at both ends."""
    return f"{name[: kept - kept // 2]}…{name[len(name) - kept // 2 :]}"
