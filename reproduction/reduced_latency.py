"""Private latency of reduced networks, all in one run: ReLU counts beside what they take, offline and online.

    python -m reproduction.reduced_latency runs/reduction -o latencies.json --link lan

Takes every folder below that has a design.json and a reduction.json, as `reproduction.reduction` leaves and packs them.
Weights are random: time and bytes are those of any weights of these widths. Each answer is compared with the integer
oracle, and nothing is measured in the clear.
What is measured is written after each network; the same call goes on with the others.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sphynx.bench.private import measure_private
from sphynx.bench.private_models import DESIGN, untrained_model
from sphynx.program.backends import BACKENDS
from sphynx.program.cost.cost import total_cost
from sphynx.program.cost.link import LINKS, parse_link
from sphynx.program.folder import load_program
from sphynx.reduce.results import REDUCTION, ReduceResult

HEADS = ("network", "ReLUs", "comparisons", "squares", "truncations", "accuracy")
TIMES = ("offline, s", "online, ms", "offline, MB", "online, MB", "messages")


def reduced_folders(runs: Path) -> Iterator[tuple[str, Path]]:
    """Yield names and folders; of a run that tried several methods those of each."""
    for file in sorted(runs.rglob(REDUCTION)):
        tried = ReduceResult.from_json(json.loads(file.read_text())).tried
        for one in tried:
            folder = file.parent / one.method / "run" if len(tried) > 1 else file.parent
            if (folder / DESIGN).is_file():
                name = str(file.parent.relative_to(runs))
                yield name if len(tried) == 1 else f"{name}, {one.method}", folder


def measure(name: str, folder: Path, link: str, repeats: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as kept:
        model = replace(untrained_model(str(folder / DESIGN), "single", Path(kept)), design=None)
        cost = total_cost(load_program(model.folder))
        given = None if link == "loopback" else LINKS.get(link) or parse_link(link)
        rows = measure_private([model], BACKENDS, {link: given}, repeats=repeats, batch=1)
    result = json.loads((folder / "result.json").read_text()) if (folder / "result.json").is_file() else {}
    counts = {"relus": cost.relus, "comparisons": cost.comparisons, "squares": cost.squares}
    return {
        "name": name,
        "link": link,
        **counts,
        "truncations": cost.truncations,
        "accuracy": result.get("accuracy"),
        "rows": {row.backend: _amounts(row.to_json()) for row in rows},
    }


def _amounts(row: dict[str, Any]) -> dict[str, Any]:
    wanted = ("offline_s", "online_s", "offline_cpu_s", "online_cpu_s", "offline_bytes", "online_bytes", "rounds")
    return {key: row[key] for key in (*wanted, "ot", "ring_bits", "repeats", "equal_to_oracle")}


def table(measured: Sequence[dict[str, Any]]) -> Iterator[str]:
    heads = [*HEADS, *(f"{backend}: {time}" for backend in BACKENDS for time in TIMES)]
    yield f"| {' | '.join(heads)} |"
    yield f"|---|{'---:|' * (len(heads) - 1)}"
    for one in measured:
        cells = [one["name"], *(f"{one[key]:,}" for key in ("relus", "comparisons", "squares", "truncations"))]
        cells.append("" if one["accuracy"] is None else f"{one['accuracy']:.2%}")
        for backend in BACKENDS:
            row = one["rows"][backend]
            cells += [f"{row['offline_s']:.2f}", f"{1e3 * row['online_s']:.0f}"]
            cells += [f"{row['offline_bytes'] / 1e6:.1f}", f"{row['online_bytes'] / 1e6:.2f}", str(row["rounds"])]
        yield f"| {' | '.join(cells)} |"


def main(words: Sequence[str] | None = None) -> int:
    """Return 1 where an answer was not the oracle's."""
    parser = argparse.ArgumentParser(prog="python -m reproduction.reduced_latency", description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--link", default="lan", help="loopback, lan, wan, or such as 20ms,300Mbit")
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args(words)
    measured = json.loads(options.out.read_text()) if options.out.is_file() else []
    known = {(one["name"], one["link"]) for one in measured}
    for name, folder in reduced_folders(options.runs):
        if (name, options.link) not in known:
            print(name, file=sys.stderr, flush=True)
            measured.append(measure(name, folder, options.link, options.repeat))
            options.out.write_text(json.dumps(measured, indent=2) + "\n")
    print("\n".join(table(measured)))
    return 0 if all(row["equal_to_oracle"] for one in measured for row in one["rows"].values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
