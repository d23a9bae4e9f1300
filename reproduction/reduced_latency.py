"""Private latency of a teacher and its reduced networks, all in one run: ReLU counts beside what they take.

    python -m reproduction.reduced_latency runs/reduction --data cifar100 --link lan

Takes every folder below that has a design.json and a reduction.json, as `reproduction.reduction` leaves and packs them,
and `teacher`. Networks of equal designs are measured once. Those whose weights are there are compiled for the images of
`--data`; others get random weights, whose ring is wider, and are measured again once their weights are there.
Each answer is compared with the integer oracle, and nothing is measured in the clear.
What is measured is written after each network; the same call goes on with the others.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import sphynx
from reproduction.gpu.state import unpacked
from reproduction.kept_reductions import FOLDER, LATENCY, TEACHER, tried_folders
from sphynx.bench.private import measure_private
from sphynx.bench.private_models import DESIGN, Model, untrained_model
from sphynx.bench.results import BenchRow, Machine, Source
from sphynx.cli.bench_options import describe_run, links_for
from sphynx.data.images import Data
from sphynx.errors import InputError, SphynxError
from sphynx.program.backends import BACKENDS
from sphynx.program.cost.cost import total_cost
from sphynx.program.folder import load_program
from sphynx.record import Record
from sphynx.reduce.results import REDUCTION, ReduceResult
from sphynx.space.artifact import MODEL
from sphynx.space.files import design_fingerprint, load_any_design
from sphynx.train.results import RESULT

ORIGINAL = "the original"
BACKEND_NAMES = {"gmw": "GMW", "gc": "Garbled circuits"}
HEADS = ("network", "accuracy, %", "ReLUs", "squares", "comparisons", "truncations", "ring", "offline, s",
         "online, ms", "offline MB", "online MB", "rounds", "rank by ReLUs", "by time")  # fmt: skip


@dataclass(frozen=True)
class Network:
    names: tuple[str, ...]  # of all whose design is this one
    folders: tuple[Path, ...]
    accuracies: tuple[float | None, ...]

    @property
    def trained(self) -> Path | None:
        """The first folder with weights."""
        return next((folder for folder in self.folders if (folder / MODEL).is_file()), None)


@dataclass(frozen=True)
class Latency(Record):
    """One network's amounts. The counts are of what was compiled; the load is of others, before it was measured."""

    names: tuple[str, ...]
    design: str  # its fingerprint
    accuracies: tuple[float | None, ...]
    relus: int
    comparisons: int
    squares: int
    truncations: int
    load_average: float
    trained: bool  # or random weights, whose ranges are wider
    rows: tuple[BenchRow, ...]


@dataclass(frozen=True)
class Latencies(Record):
    machine: Machine
    source: Source
    networks: tuple[Latency, ...] = ()


def read_latencies(results: Path) -> Latencies | None:
    file = results / FOLDER / LATENCY
    return Latencies.from_json(json.loads(file.read_text()), str(file)) if file.is_file() else None


def method_of(name: str) -> str:
    """The method of a measured network, by its name."""
    return name if name == ORIGINAL else name.partition(", ")[2] or name.partition("-")[0]


def modes_of(measured: Latencies) -> list[tuple[str, str]]:
    """Links and backends."""
    return list(dict.fromkeys((row.link, row.backend) for one in measured.networks for row in one.rows))


def networks_below(runs: Path) -> dict[str, Network]:
    """Find networks by the fingerprints of their designs, the original first."""
    found: dict[str, Network] = {}
    for name, folder in _folders(runs):
        if not (folder / DESIGN).is_file():
            continue
        design = design_fingerprint(load_any_design(folder / DESIGN))
        accuracy = json.loads((folder / RESULT).read_text())["accuracy"] if (folder / RESULT).is_file() else None
        known = found.get(design, Network((), (), ()))
        found[design] = Network((*known.names, name), (*known.folders, folder), (*known.accuracies, accuracy))
    return found


def _folders(runs: Path) -> Iterator[tuple[str, Path]]:
    """Yield names and folders; of a reduction that tried several methods those of each."""
    yield ORIGINAL, runs / TEACHER
    for file in sorted(runs.rglob(REDUCTION)):
        name = str(file.parent.relative_to(runs))
        folders = tried_folders(file.parent, ReduceResult.from_json(json.loads(file.read_text())))
        for method, folder in folders.items():
            yield name if len(folders) == 1 else f"{name}, {method}", folder


def measure(design: str, network: Network, data: Data | None, links: str, repeats: int) -> Latency:
    load = round(os.getloadavg()[0], 2)
    with tempfile.TemporaryDirectory() as kept:
        model = None if data is None else _compiled(network, data, Path(kept))
        trained = model is not None
        if model is None:
            model = replace(untrained_model(str(network.folders[0] / DESIGN), "single", Path(kept)), design=None)
        cost = total_cost(load_program(model.folder))
        rows = measure_private([model], BACKENDS, links_for(links), repeats=repeats, batch=1)
    plain = tuple(replace(row, layers=(), timeline=()) for row in rows)
    counts = (cost.relus, cost.comparisons, cost.squares, cost.truncations)
    return Latency(network.names, design, network.accuracies, *counts, load, trained, plain)


def _compiled(network: Network, data: Data, folder: Path) -> Model | None:
    """The trained network; None where its weights are not there, or its numbers fit no ring."""
    if network.trained is None:
        return None
    try:
        return Model(network.names[0], sphynx.compile_network(network.trained, calibrate=data).save(folder), None)
    except SphynxError as error:
        print(f"{network.names[0]}: random weights are measured instead: {error}", file=sys.stderr)
        return None


def latency_table(measured: Latencies) -> Iterator[str]:
    """Write a table for each backend and link, the fastest online first."""
    machine = measured.machine
    loads = [one.load_average for one in measured.networks]
    yield f"{machine.architecture}, {machine.cores} cores, {', '.join(machine.cpu_features)};"
    yield f"load {min(loads):g} to {max(loads):g} before each network; wire {measured.source.wire}, commit"
    yield f"{measured.source}."
    equal = [row.equal_to_oracle for one in measured.networks for row in one.rows]
    yield f"{sum(equal)} of {len(equal)} answers are equal to the oracle's."
    for link, backend in modes_of(measured):
        rows = [
            (one, row) for one in measured.networks for row in one.rows if (row.link, row.backend) == (link, backend)
        ]
        by_relus = sorted(one.relus for one, _ in rows)
        yield f"\n### {BACKEND_NAMES[backend]} over {link}\n"
        yield f"| {' | '.join(HEADS)} |"
        yield f"|---|{'---:|' * (len(HEADS) - 1)}"
        for rank, (one, row) in enumerate(sorted(rows, key=lambda pair: pair[1].online_s), 1):
            yield _line(one, row, by_relus.index(one.relus) + 1, rank)


def _line(one: Latency, row: BenchRow, by_relus: int, by_time: int) -> str:
    cells = [
        "; ".join(one.names),
        "; ".join("" if accuracy is None else f"{100 * accuracy:.2f}" for accuracy in one.accuracies),
        *(f"{count:,}" for count in (one.relus, one.squares, one.comparisons, one.truncations)),
        f"{row.ring_bits}" if one.trained else f"{row.ring_bits}, random weights",
        f"{row.offline_s:.2f}",
        f"{1e3 * row.online_s:.0f}",
        f"{row.offline_bytes / 1e6:.1f}",
        f"{row.online_bytes / 1e6:.2f}",
        str(row.rounds),
        str(by_relus),
        str(by_time),
    ]
    return f"| {' | '.join(cells)} |"


def main(words: Sequence[str] | None = None) -> int:
    """Return 1 where an answer was not the oracle's."""
    parser = argparse.ArgumentParser(prog="python -m reproduction.reduced_latency", description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path, help="run folders, or the folder that they were packed into")
    parser.add_argument("--data", help="that they were trained on: weights that are there are then compiled")
    parser.add_argument("-o", "--out", type=Path, default=Path("results", FOLDER, LATENCY))
    parser.add_argument(
        "--link", default="lan", help="loopback, lan, wan, or such as 20ms,300Mbit; with commas several"
    )
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args(words)
    out: Path = options.out
    machine, source = describe_run()
    measured = Latencies(machine, replace(source, command=()))  # its paths are of one machine
    if out.is_file():
        measured = _continued(Latencies.from_json(json.loads(out.read_text()), str(out)), measured, out)
    out.parent.mkdir(parents=True, exist_ok=True)
    data = None if options.data is None else sphynx.open_data(options.data)
    assert data is None or isinstance(data, Data)
    with unpacked(options.runs) as runs:
        for design, network in networks_below(runs).items():
            trained = data is not None and network.trained is not None
            if not any(one.design == design and one.trained >= trained for one in measured.networks):
                print("; ".join(network.names), file=sys.stderr, flush=True)
                found = measure(design, network, data, options.link, options.repeat)
                others = [one for one in measured.networks if one.design != design]
                measured = replace(measured, networks=(*others, found))
                out.write_text(json.dumps(measured.to_json(), indent=1) + "\n")
    print("\n".join(latency_table(measured)))
    return 0 if all(row.equal_to_oracle for one in measured.networks for row in one.rows) else 1


def _continued(before: Latencies, now: Latencies, out: Path) -> Latencies:
    """All rows are to be of one program on one machine."""
    same = before.source.source_sha256 == now.source.source_sha256, before.machine.system == now.machine.system
    if not all(same):
        raise InputError(
            "its networks were measured by another version, or on another machine",
            where=str(out),
            remedy="Give another file, or remove this one.",
        )
    return before


if __name__ == "__main__":
    raise SystemExit(main())
