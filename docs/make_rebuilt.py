"""Prints docs/results/rebuilt.md: models made again from their cards alone, one file of results/rebuilt each.

python docs/make_rebuilt.py > docs/results/rebuilt.md        (or: make docs)
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from sphynx.api.rebuilding import Rebuilt

KEPT = Path(__file__).parents[1] / "results" / "rebuilt"

HEADER = """# Models made again

A shipped model's card has the commands from data to weights, with its teachers. These were made again from their card
alone, in a folder that had the data and nothing else; minutes are of all trainings, the teachers' among them. Weights
differ from one device or torch to another; accuracies should agree within the spread between seeds.

    sphynx models rebuild NAME -o FOLDER --json > results/rebuilt/NAME.json && make docs
"""

TABLE = """
| model | accuracy on the card | rebuilt | difference, points | minutes | device | commit |
|---|---|---|---|---|---|---|"""


def page(rebuilt: Iterable[Rebuilt]) -> str:
    rows = [_line(one) for one in rebuilt]
    return "\n".join([HEADER, *([TABLE.strip(), *rows] if rows else ["None was yet."])]) + "\n"


def _line(one: Rebuilt) -> str:
    points = 100 * (one.accuracy - one.accuracy_on_card)
    accuracies = f"{100 * one.accuracy_on_card:.2f} % | {100 * one.accuracy:.2f} % | {points:+.2f}"
    return f"| {one.name} | {accuracies} | {one.minutes:.1f} | {one.device} | {(one.commit or 'unknown')[:12]} |"


if __name__ == "__main__":
    files = sorted(KEPT.glob("*.json"))
    print(page(Rebuilt.from_json(json.loads(file.read_text()), str(file)) for file in files), end="")
