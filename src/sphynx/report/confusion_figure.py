"""Which classes are mistaken for which, as a square of shades: rows are the labels, columns the answers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from sphynx.report.figures import Chart
from sphynx.svg.drawing import Box, Drawing, Text, text_width
from sphynx.units import class_text

FEW_CLASSES = 20  # that a square can still name
SIZE = 11.0
FREQUENT = 6
NAME_ROOM = 170.0  # about thirty letters; longer names are cut
NARROWEST = SIZE + 0.2  # column, so that names beside each other can be read

Counts = Sequence[Sequence[int]]


def confusion_chart(counts: Counts, names: Sequence[str]) -> Chart:
    caption = "Each row is a class, each column an answer; the number says how many test images. Wrong answers are red."
    return Chart(
        "confusion",
        "Which classes are mistaken for which",
        caption,
        partial(_draw, counts, [class_text(name) for name in names]),
    )


def frequent_confusions(counts: Counts, names: Sequence[str]) -> list[tuple[str, str, int]]:
    """Class, wrong answer, how often: the most frequent ones first."""
    wrong = [
        (names[label], names[answer], times)
        for label, row in enumerate(counts)
        for answer, times in enumerate(row)
        if times and answer != label
    ]
    return sorted(wrong, key=lambda pair: -pair[2])[:FREQUENT]


def _draw(counts: Counts, names: Sequence[str], width: float) -> Drawing:
    """Column names are written upwards where they are wider than a column."""
    longest = max(text_width(name, SIZE) for name in names)
    room = min(longest, NAME_ROOM, width - 20 - NARROWEST * len(names))
    left = max(room, text_width("label", SIZE)) + 12
    side = min((width - left - 8) / len(names), 44.0)
    upwards = room + 6 > side
    top = 22 + (room + 8 if upwards else 16)
    drawing = Drawing(width, top + side * len(names) + 6, "confusion of the classes")
    drawing.add(Text(left, 13, "answer", "muted", size=SIZE), Text(left - 8, top - 6, "label", "muted", "end", SIZE))
    for number, name in enumerate(names):
        middle, text = left + (number + 0.5) * side, _shorten(name, room)
        x, anchor = (middle + SIZE * 0.35, "start") if upwards else (middle, "middle")
        drawing.add(Text(x, top - 6, text, "ink", anchor, SIZE, turned=upwards))  # type: ignore[arg-type]
        y = top + (number + 0.5) * side + SIZE * 0.35
        drawing.add(Text(left - 8, y, text, "ink", "end", SIZE))
    for label, row in enumerate(counts):
        of_class = max(sum(row), 1)
        for answer, times in enumerate(row):
            x, y = left + answer * side, top + label * side
            role, tip = "s2" if label == answer else "s5", f"{names[label]} mistaken for {names[answer]}: {times:,}"
            drawing.add(Box(x + 0.5, y + 0.5, side - 1, side - 1, "wash", 2, tip=tip))
            if times:
                drawing.add(
                    Box(x + 0.5, y + 0.5, side - 1, side - 1, role, 2, tip=tip, strength=_shade(times / of_class))
                )
                if text_width(str(times), SIZE) <= side - 3:
                    drawing.add(Text(x + side / 2, y + side / 2 + SIZE * 0.35, str(times), "ink", "middle", SIZE))
    return drawing


def _shade(share: float) -> float:
    """A single wrong answer must be seen, and the number on it read."""
    return 0.18 + 0.42 * share


def _shorten(name: str, room: float) -> str:
    while len(name) > 2 and text_width(name, SIZE) > room:
        name = name[:-2] + "…"
    return name
