"""Charts over two axes: marks and curves (`curves`, `over_epochs`), groups of bars (`bars`).

Each fits the width it is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sphynx.svg.chart_axes import Axis, Frame, epoch_axis, linear_axis, log_axis
from sphynx.svg.drawing import Box, Dot, Drawing, Key, Line, Mark, Text, legend, text_width

WIDE, NARROW = 720.0, 356.0
SIZE = 12.0
LEAST_STEP = 14.0  # from one bar to the next


@dataclass(frozen=True)
class Point:
    x: float
    y: float
    tip: str = ""
    error: float = 0.0
    label: str = ""  # beside its mark


@dataclass(frozen=True)
class Series:
    name: str
    points: Sequence[Point]
    role: str
    mark: Mark = "circle"
    hollow: bool = False
    joined: bool = True
    marked: bool = True
    dashed: bool = False
    named: bool = True  # in the legend
    bold: bool = False  # what the chart is about


def curves(
    title: str,
    series: Sequence[Series],
    x: Axis,
    y: Axis,
    *,
    x_name: str,
    y_name: str,
    width: float = WIDE,
    height: float = 0.0,
    note: str = "",
) -> Drawing:
    key = legend([Key(s.name, s.role, s.mark, s.hollow, not s.marked) for s in series if s.named], width - 12)
    height = height or (340.0 if width >= WIDE else 280.0)
    tick_room = max(text_width(y.name(tick), SIZE) for tick in y.ticks)
    left, top = tick_room + SIZE + 18, key.height + 10
    note_lines = wrapped(note, width - 12)
    drawing = Drawing(width, top + height + 46 + 16 * len(note_lines), title)
    drawing.place(key, 6, 0)
    right = max(14.0, text_width(x.name(x.ticks[-1]), SIZE) / 2 + 2)  # the last tick's name is centred on it
    frame = Frame(drawing, left, top, width - left - right, height, x, y)
    frame.draw_y(y_name)
    frame.draw_x(x_name)
    behind_first = list(reversed(series))  # the first series lies on top
    for s in behind_first:
        places = [frame.at(point.x, point.y) for point in s.points]
        if s.joined and len(places) > 1:
            # A curve without marks is hovered over as a whole, and tells its last value.
            tip = "" if s.marked else s.points[-1].tip
            thick = 4.0 if s.bold else 1.5 if s.dashed else 2.0
            drawing.add(Line(tuple(places), s.role, thick, s.dashed, tip))
    for s in behind_first:
        for point in s.points:
            px, py = frame.at(point.x, point.y)
            if point.error:
                up, down = frame.y_at(point.y + point.error), frame.y_at(point.y - point.error)
                drawing.add(Line(((px, up), (px, down)), s.role, 1.2))
            if s.marked:
                drawing.add(Dot(px, py, s.role, s.mark, 6.5 if s.bold else 4.5, s.hollow, point.tip))
            if point.label:
                half = text_width(point.label, SIZE) / 2 + 2
                middle = min(max(px, left + half), width - half)
                drawing.add(Text(middle, py - 11, point.label, s.role, "middle", SIZE, bold=True))
    for number, line in enumerate(note_lines):
        drawing.add(Text(6, top + height + 46 + 12 + 16 * number, line, "muted", size=11))
    return drawing


def over_epochs(
    title: str, series: Sequence[Series], y_name: str, width: float, *, log: bool = False, note: str = ""
) -> Drawing:
    """`log` for what falls by a factor, as losses do; otherwise the axis begins at 0."""
    values = [point.y for s in series for point in s.points]
    y = log_axis(values) if log else linear_axis(values, zero=True)
    x = epoch_axis(max(point.x for s in series for point in s.points), width)
    height = 280.0 if width >= WIDE else 240.0
    return curves(title, series, x, y, x_name="epoch", y_name=y_name, width=width, height=height, note=note)


@dataclass(frozen=True)
class Bar:
    value: float | None
    role: str
    hollow: bool = False
    error: float = 0.0
    tip: str = ""


@dataclass(frozen=True)
class Group:
    label: str
    bars: Sequence[Bar] = field(default_factory=tuple)


def bars(
    title: str,
    groups: Sequence[Group],
    key: Sequence[Key],
    *,
    y_name: str,
    width: float = WIDE,
    note: str = "",
    from_zero: bool = False,
) -> Drawing:
    """Groups side by side; in a narrow drawing they continue on further lines."""
    values = [b.value + side * b.error for g in groups for b in g.bars if b.value is not None for side in (-1, 1)]
    y = linear_axis(values or [0.0, 100.0], zero=from_zero)
    if not from_zero and values and min(values) - y.low < 0.08 * (y.high - y.low):  # a lowest bar must be seen
        y = linear_axis([*values, y.low - (y.ticks[1] - y.ticks[0])])
    names = legend(key, width - 12)
    left, height = max(text_width(y.name(t), SIZE) for t in y.ticks) + SIZE + 18, 230.0
    room = width - left - 14
    needed = max(max(len(g.bars) * LEAST_STEP + 12, text_width(g.label, SIZE) + 10) for g in groups)
    per_line = max(1, min(len(groups), int(room // needed)))
    per_line = -(-len(groups) // -(-len(groups) // per_line))  # even lines
    lines = [groups[start : start + per_line] for start in range(0, len(groups), per_line)]
    note_lines = wrapped(note if y.low == 0 else f"{note} The axis does not start at 0.", width - 12)
    top = names.height + 20
    drawing = Drawing(width, top + len(lines) * (height + 38) + 16 * len(note_lines), title)
    drawing.place(names, 6, 0)
    slot = room / per_line
    for number, line in enumerate(lines):
        frame = Frame(drawing, left, top + number * (height + 38), room, height, None, y)
        frame.draw_y(y_name)
        for place, group in enumerate(line):
            _group(frame, group, frame.left + (place + 0.5) * slot, min(slot * 0.8 / max(len(group.bars), 1), 30.0))
        bottom = frame.top + height
        drawing.add(Line(((left, bottom), (left + room, bottom)), "muted"))
    for number, text in enumerate(note_lines):
        drawing.add(Text(6, drawing.height - 16 * (len(note_lines) - number) + 12, text, "muted", size=11))
    return drawing


def _group(frame: Frame, group: Group, centre: float, step: float) -> None:
    bottom = frame.top + frame.height
    start = centre - step * len(group.bars) / 2
    for number, bar in enumerate(group.bars):
        if bar.value is None:
            continue
        x, y = start + number * step, frame.y_at(bar.value)
        frame.drawing.add(Box(x + 1.5, y, step - 3, bottom - y, bar.role, 1.5, bar.hollow, bar.tip))
        if bar.error:
            up, down = frame.y_at(bar.value + bar.error), frame.y_at(bar.value - bar.error)
            frame.drawing.add(Line(((x + step / 2, up), (x + step / 2, down)), "ink", 1.2))
        if step >= 21:
            lift = frame.y_at(bar.value + bar.error)
            frame.drawing.add(Text(x + step / 2, lift - 4, f"{bar.value:.1f}", "muted", "middle", 9.5))
    frame.drawing.add(Text(centre, bottom + SIZE + 6, group.label, "ink", "middle", SIZE))


def stacked(title: str, panels: Sequence[tuple[str, Drawing]], width: float) -> Drawing:
    """Drawings below each other, each under its own heading."""
    drawing = Drawing(width, sum(panel.height + 26 for _, panel in panels), title)
    y = 0.0
    for heading, panel in panels:
        drawing.add(Text(6, y + 15, heading, bold=True, size=13))
        drawing.place(panel, 0, y + 24)
        y += panel.height + 26
    return drawing


def wrapped(text: str, width: float, size: float = 11.0) -> list[str]:
    lines: list[str] = []
    for word in text.split():
        if lines and text_width(f"{lines[-1]} {word}", size) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines
