"""Axes: from values to pixels, with round ticks, and the frame of a chart that the marks are drawn into."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sphynx.svg.drawing import Box, Drawing, Line, Text, text_width
from sphynx.units import short_number

ALIKE = 1e-9  # values that differ by a smaller share get an axis as one value does


@dataclass(frozen=True)
class Axis:
    low: float
    high: float
    ticks: tuple[float, ...]
    log: bool = False
    unit: str = ""

    def place(self, value: float) -> float:
        """0 at the low end, 1 at the high end."""
        if self.log:
            return (math.log(value) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
        return (value - self.low) / (self.high - self.low)

    def name(self, tick: float) -> str:
        return short_number(tick) + self.unit


def linear_axis(values: Sequence[float], *, zero: bool = False, ticks: int = 5, unit: str = "") -> Axis:
    """Covers the values, from round number to round number."""
    low, high = min(values), max(values)
    if zero:
        low = min(low, 0.0)
    if high - low <= ALIKE * max(abs(low), abs(high), ALIKE):
        low, high = (low - 1, high + 1) if not zero else (0.0, 1.0)
    step = _round_step((high - low) / ticks)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return Axis(first * step, last * step, tuple(n * step for n in range(first, last + 1)), unit=unit)


def log_axis(values: Sequence[float], *, unit: str = "") -> Axis:
    """A quarter more room at both ends; ticks at powers of ten, with 2 and 5 between where that is too few."""
    low, high = min(values) / 1.25, max(values) * 1.25
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1,), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9)):
        ticks = tuple(step * 10.0**decade for decade in decades for step in steps if low <= step * 10.0**decade <= high)
        if len(ticks) >= 3:
            break
    else:
        ticks = tuple(tick for tick in linear_axis([low, high]).ticks if low <= tick <= high)
    return Axis(low, high, ticks, log=True, unit=unit)


def epoch_axis(last: float, width: float) -> Axis:
    """From 0 to the last epoch, ticks at whole numbers only."""
    ticks = linear_axis([0.0, last], ticks=max(3, int(width // 110))).ticks
    return Axis(0.0, last, tuple(tick for tick in ticks if tick == int(tick) and tick <= last))


def _round_step(step: float) -> float:
    scale = 10.0 ** math.floor(math.log10(step))
    return next(factor * scale for factor in (1, 2, 2.5, 5, 10) if step <= factor * scale * (1 + 1e-9))


@dataclass
class Frame:
    """The plotting area (left, top, width, height) of a drawing and its axes; `x` may be None for named places."""

    drawing: Drawing
    left: float
    top: float
    width: float
    height: float
    x: Axis | None
    y: Axis | None

    def at(self, x: float, y: float) -> tuple[float, float]:
        return self.x_at(x), self.y_at(y)

    def x_at(self, x: float) -> float:
        assert self.x is not None
        return self.left + self.x.place(x) * self.width

    def y_at(self, y: float) -> float:
        assert self.y is not None
        return self.top + (1 - self.y.place(y)) * self.height

    def draw_y(self, name: str = "", size: float = 12.0) -> None:
        assert self.y is not None
        for tick in self.y.ticks:
            y = self.y_at(tick)
            self.drawing.add(Line(((self.left, y), (self.left + self.width, y)), "grid"))
            self.drawing.add(Text(self.left - 8, y + size * 0.35, self.y.name(tick), "muted", "end", size))
        if name:
            self.drawing.add(Text(size, self.top + self.height / 2, name, "muted", "middle", size, turned=True))

    def draw_x(self, name: str = "", size: float = 12.0) -> None:
        assert self.x is not None
        bottom, last = self.top + self.height, -math.inf
        for tick in self.x.ticks:
            x = self.x_at(tick)
            self.drawing.add(Line(((x, self.top), (x, bottom)), "grid"))
            half = text_width(self.x.name(tick), size) / 2
            if x - half > last + 6:  # names that would touch are left out
                self.drawing.add(Text(x, bottom + size + 6, self.x.name(tick), "muted", "middle", size))
                last = x + half
        self.drawing.add(Line(((self.left, bottom), (self.left + self.width, bottom)), "muted"))
        if name:
            self.drawing.add(Text(self.left + self.width / 2, bottom + 2 * size + 14, name, "muted", "middle", size))

    def wash(self) -> None:
        self.drawing.add(Box(self.left, self.top, self.width, self.height, "wash", 4))
