"""Prints a drawing of the docs as SVG: the layers of the code, from their contract, or the protocol's two parties.

python docs/make_drawings.py layers > docs/images/layers.svg        (or: make docs)
python docs/make_drawings.py parties > docs/images/parties.svg
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

from sphynx.svg.drawing import Box, Drawing, Line, Text, text_width

ROOT = Path(__file__).parents[1]
SAYS = {
    "cli": "verbs: parse, call, print",
    "app": "the page on this machine",
    "api": "the names of import sphynx",
    "demo": "the whole way at once",
    "report": "figures, cards, the page about a run",
    "service": "server, client, keys",
    "bench": "rates and bounds",
    "design": "the method in one run",
    "reduce": "fewer ReLUs",
    "zoo": "trained networks by name",
    "protocol": "two parties' messages",
    "compiler": "networks to programs",
    "search": "strategies, rankings",
    "train": "recipes, the loop",
    "program": "exact integers, files, costs",
    "network": "designs as torch modules",
    "space": "cells, budgets, the planner",
    "data": "data sets, batches",
    "run": "run folders, checkpoints, progress",
    "config": "settings from TOML",
    "record": "results as JSON",
    "core": "the compiled core's face in Python",
    "system": "what only some systems have",
    "errors": "what, where, remedy",
    "svg": "drawings",
    "threads": "safe starts",
    "version": "of this code",
    "units": "how numbers are written",
}
TORCH_FREE = "what a client installs runs without torch"
ROW, LOW, GAP, WIDE, MARGIN, ROOM = 42.0, 26.0, 6.0, 760.0, 14.0, 140.0
ROOMS = {  # the first and the last layer of each
    "for people": ("cli", "report"),
    "whole tasks": ("service", "zoo"),
    "how it works": ("protocol", "train"),
    "what it is about": ("program", "run"),
    "ground": ("config", "units"),
}


def layers() -> Drawing:
    """Draw each layer below those that may import it."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    rows = [[part.removeprefix("sphynx.") for part in row.split(" | ")] for row in contracts[0]["layers"]]
    light = {
        module.removeprefix("sphynx.")
        for contract in contracts
        if contract["name"] == TORCH_FREE
        for module in contract["source_modules"]
    }
    drawing = Drawing(WIDE, 0, "The layers of the code, each above those that it may import")
    tops: dict[str, float] = {}
    ends: dict[str, float] = {}
    y = MARGIN
    for row in rows:
        high = ROW if len(row) > 1 else LOW
        width = (WIDE - ROOM - MARGIN - GAP * (len(row) - 1)) / len(row)
        for place, name in enumerate(row):
            tops[name], ends[name] = y, y + high
            drawing.add(Box(ROOM + place * (width + GAP), y, width, high, "s2" if name in light else "s0", 6, True))
            _words(drawing, ROOM + place * (width + GAP) + 10, y, width, name, is_low=high == LOW)
        y += high + GAP
    for room, (first, last) in ROOMS.items():
        drawing.add(Line(((ROOM - 12, tops[first]), (ROOM - 12, ends[last])), "muted", 2.0))
        drawing.add(Text(ROOM - 22, (tops[first] + ends[last]) / 2 + 4, room, "ink", "end", 13, bold=True))
    y += 8
    drawing.add(Text(ROOM - 22, y + 11.5, "imports go down", "muted", "end"))
    for x, role, words in (
        (ROOM, "s2", "runs without torch, as clients and servers do"),
        (500.0, "s0", "may use torch"),
    ):
        drawing.add(Box(x, y, 14, 14, role, 3, hollow=True), Text(x + 20, y + 11.5, words, "muted"))
    drawing.height = y + 14 + MARGIN
    return drawing


def _words(drawing: Drawing, x: float, y: float, width: float, name: str, *, is_low: bool) -> None:
    size = min(11.5, 11.5 * (width - 20) / text_width(SAYS[name], 11.5))
    drawing.add(Text(x, y + 17, name, "ink", size=13.5, bold=True))
    drawing.add(Text(x + 76 if is_low else x, y + (17 if is_low else 33), SAYS[name], "muted", size=round(size, 1)))


CLIENT, SERVER, SIDE = 20.0, 570.0, 170.0  # the left edges of the two parties, and how wide they are
PHASES = (
    (
        "once a connection",
        (("a secret key", "a public key", 1, ""), ("", "set-up of oblivious transfers", 0, "the weights")),
    ),
    (
        "before there is a picture",
        (
            ("random masks r", "the masks, encrypted", 1, ""),
            ("share u", "products with the weights, encrypted", -1, "share s"),
            ("material", "oblivious transfers for the ReLUs", 0, "material"),
        ),
    ),
    (
        "when you ask",
        (
            ("picture x", "x - r: noise", 1, "its part of the sums"),
            ("", "a few bytes for each ReLU, layer by layer", 0, ""),
            ("the answer", "its share of the answer", -1, "learns nothing"),
        ),
    ),
)
STEP, HEAD = 38.0, 30.0


def parties() -> Drawing:
    """Draw who sends what to whom, phase by phase."""
    height = MARGIN + 24 + sum(HEAD + STEP * len(steps) + 12 for _, steps in PHASES)
    drawing = Drawing(WIDE, height, "The two parties: what each has, and what they send each other, in three phases")
    drawing.add(Text(CLIENT + SIDE / 2, MARGIN + 10, "You", "s0", "middle", 15, bold=True))
    drawing.add(Text(SERVER + SIDE / 2, MARGIN + 10, "Server", "s1", "middle", 15, bold=True))
    y = MARGIN + 24
    for phase, steps in PHASES:
        deep = HEAD + STEP * len(steps)
        drawing.add(Box(CLIENT - 6, y, WIDE - 2 * (CLIENT - 6), deep, "wash", 8))
        drawing.add(Text(WIDE / 2, y + 19, phase, "ink", "middle", 13, bold=True))
        for number, (left, message, way, right) in enumerate(steps):
            middle = y + HEAD + STEP * number + 14
            _party(drawing, CLIENT, middle, left, "s0")
            _party(drawing, SERVER, middle, right, "s1")
            _message(drawing, middle, message, way)
        y += deep + 12
    return drawing


def _party(drawing: Drawing, x: float, y: float, text: str, role: str) -> None:
    if text:
        drawing.add(Box(x, y - 14, SIDE, 28, role, 6, hollow=True))
        drawing.add(Text(x + SIDE / 2, y + 4.5, text, "ink", "middle", 12.5))


def _message(drawing: Drawing, y: float, text: str, way: int) -> None:
    """1: to the server, -1: to the client, 0: both ways."""
    left, right = CLIENT + SIDE + 12, SERVER - 12
    drawing.add(Line(((left, y + 5), (right, y + 5)), "muted", 1.6))
    for end, back in ((right, -7.0) if way >= 0 else (left, 7.0), (left, 7.0) if way <= 0 else (right, -7.0)):
        drawing.add(Line(((end + back, y), (end, y + 5), (end + back, y + 10)), "muted", 1.6))
    drawing.add(Text((left + right) / 2, y - 3, text, "ink", "middle", 12))


if __name__ == "__main__":
    print({"layers": layers, "parties": parties}[sys.argv[1]]().to_svg(), end="")
