"""Prints docs/results/rebuilt.md: models made again from their cards alone, one file of results/rebuilt each.

python docs/make_rebuilt.py > docs/results/rebuilt.md        (or: make docs)
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from sphynx.api.rebuilding import Rebuilt
from sphynx.zoo.shipped import load_card

KEPT = Path(__file__).parents[1] / "results" / "rebuilt"

HEADER = """# Models made again

A shipped model's card has the commands from data to weights, with its teachers. These were made again from their card
alone, in a folder that had the data and nothing else; minutes are of all trainings, the teachers' among them. Weights
differ from one run to the next, as GPUs do not add in one order, and teachers with them; the lowest and highest of the
seeds that were trained beside the shipped one say how much a seed does.

    sphynx models rebuild NAME -o FOLDER --json > results/rebuilt/NAME.json && make docs
"""

TABLE = """
| model | accuracy on the card | of its seeds | rebuilt | difference, points | minutes | device | commit |
|---|---|---|---|---|---|---|---|"""


def page(rebuilt: Mapping[str, tuple[Rebuilt, Sequence[float]]]) -> str:
    """Write the page of models by name, each with the accuracies of the seeds that its card names."""
    rows = [_line(*rebuilt[name]) for name in sorted(rebuilt)]
    return "\n".join([HEADER, *([TABLE.strip(), *rows] if rows else ["None was yet."])]) + "\n"


def _line(one: Rebuilt, seeds: Sequence[float]) -> str:
    points = 100 * (one.accuracy - one.accuracy_on_card)
    spread = f"{100 * min(seeds):.2f} to {100 * max(seeds):.2f} %" if seeds else "one"
    accuracies = f"{100 * one.accuracy_on_card:.2f} % | {spread} | {100 * one.accuracy:.2f} % | {points:+.2f}"
    return f"| {one.name} | {accuracies} | {one.minutes:.1f} | {one.device} | {(one.commit or 'unknown')[:12]} |"


if __name__ == "__main__":
    kept = [Rebuilt.from_json(json.loads(file.read_text()), str(file)) for file in KEPT.glob("*.json")]
    print(
        page({one.name: (one, (load_card(one.name)["all_seeds"] or {}).get("accuracies", ())) for one in kept}), end=""
    )
