"""Private inference of the paper's larger networks with random weights: results/private/paper-EXPERIMENT*.json.

Bytes, rounds and memory are what they are whatever else the machine does; seconds are shown where nothing else ran.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from reproduction.experiments import Experiment, Row
from sphynx.bench.results import BenchRow, BenchRun
from sphynx.report.naming import DATA_SETS
from sphynx.space.json_file import read_json

MOST_LOAD = 1.5  # of the machine when a file was begun: above it, other work shared its cores


def write_private(results: Path, experiment: Experiment) -> Iterator[str]:
    files = sorted((results / "private").glob(f"paper-{experiment.name}*.json"))
    runs = [BenchRun.from_json(read_json(file), where=file.name) for file in files]
    if not runs:
        return
    runs.sort(key=lambda run: run.rows[0].relus)
    machine = runs[0].machine
    rings = " and ".join(sorted({f"{row.ring_bits} bits" for run in runs for row in run.rows}))
    cores = f"{machine.cores} {machine.architecture} cores"
    yield f"Private inference of its networks, measured: two processes over TLS, {cores} for both. Weights are random,"
    yield f"which makes the ring wide ({rings}); trained ones need fewer bits and bytes. All answers equal the integer"
    yield "oracle's. Memory is the most that each party had; `--weight-memory` bounds the server's, and costs time."
    if any(not _is_quiet(run) for run in runs):
        yield "Where no times stand, other work shared the machine."
    if older := [run for run in runs if run.source.wire is None]:
        yield f"Rows of {_list_relus(older)} ReLUs are of an older protocol."
    yield ""
    for run in runs:
        yield from _write_commands(run, experiment)
    heads = "online | offline | online, MB | offline, MB | rounds | server, client, GB | online in the paper"
    yield f"\n| ReLUs | protocol | link | {heads} |\n|---|---|---|---|---|---|---|---|---|---|"
    for run in runs:
        for row in run.rows:
            yield _write_row(row, run, experiment)
    yield "\nThe paper's times are DELPHI's on its machines, of ImageNet estimates.\n"


def _write_commands(run: BenchRun, experiment: Experiment) -> Iterator[str]:
    words = list(run.source.command)
    if "-o" in words:
        del words[(place := words.index("-o")) : place + 2]
    files = words[words.index("--untrained") + 1].split(",")
    for file, relus in zip(files, dict.fromkeys(row.relus for row in run.rows), strict=True):
        own = next(row for row in experiment.rows if _has_relus(row, relus))
        image, classes = DATA_SETS[own.data]
        size = f"--channels {own.channels} --depth {own.depth} --reduce-at {','.join(map(str, own.reduce_at or ()))}"
        given = f"--image-size {image.height} --classes {classes} --conv-stack paper"
        yield f"    sphynx show {own.cells} {size} {given} -o {file}"
    yield f"    {' '.join(words)}"


def _write_row(row: BenchRow, run: BenchRun, experiment: Experiment) -> str:
    printed = {own.latency_ms for own in experiment.rows if _has_relus(own, row.relus)}
    paper = ", ".join(f"{ms / 1000:.2f} s" for ms in printed if ms is not None)
    times = f"{1e3 * row.online_s:.0f} ms | {row.offline_s:.2f} s" if _is_quiet(run) else " | "
    megabytes = f"{row.online_bytes / 1e6:.2f} | {row.offline_bytes / 1e6:.1f}"
    memory = ", ".join(f"{size / 1e9:.1f}" for size in (row.peak_memory_bytes.server, row.peak_memory_bytes.client))
    name = f"{row.relus:,} | {row.backend} | {row.link}"
    return f"| {name} | {times} | {megabytes} | {row.rounds} | {memory} | {paper or '-'} |"


def _is_quiet(run: BenchRun) -> bool:
    return run.machine.load_average[0] <= MOST_LOAD


def _list_relus(runs: Sequence[BenchRun]) -> str:
    return " and ".join(dict.fromkeys(f"{row.relus:,}" for run in runs for row in run.rows))


def _has_relus(row: Row, relus: int) -> bool:
    """Return whether a row of the paper's is of so many ReLUs; ImageNet's are printed in whole thousands."""
    return row.network == "sphynx" and row.label in (f"{relus / 1000:.1f}K", f"{relus / 1000:.0f}K")
