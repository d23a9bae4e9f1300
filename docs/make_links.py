"""Prints docs/results/links.md: private inference between two network namespaces, beside links that are emulated.

python docs/make_links.py > docs/results/links.md        (or: make docs)
"""

from __future__ import annotations

import json
import shlex
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.namespaces import link_words

from sphynx.bench.results import BenchRow, BenchRun

KEPT = HERE.parent / "results" / "private"
AT_REST = 1.5  # a load average at the start, of two cores
NAMESPACES, EMULATED = "namespaces.json", "emulated.json"

HEADER = """# Two hosts: real TCP beside emulated links

The server and the client in network namespaces of their own on one machine, each pinned to half of its cores, over
mutual TLS 1.3 and the kernel's TCP (`benchmarks/namespaces.py`): slow start, windows, acknowledgements and queues that
overflow are in these times. *Emulated* is `sphynx bench private --link`, which delays each message by half of the round
trip and by its bytes at the rate, while both parties share all cores. lan is 0.5 ms and 1 Gbit/s, wan 40 ms and
100 Mbit/s, each way. `make docs` writes this page from `results/private/{namespaces,emulated}.json`:

    python -m benchmarks.namespaces sphynx-cifar100-25k sphynx-cifar100-51k stream-cifar100-25k \\
        --backend gc,gmw --link loopback,lan,wan --repeat 5 -o results/private/namespaces.json
    sphynx bench private sphynx-cifar100-25k sphynx-cifar100-51k stream-cifar100-25k \\
        --backend gc,gmw --link loopback,lan,wan --repeat 5 -o results/private/emulated.json

The first needs root. Where the kernel has netem it delays and limits the packets; elsewhere a process between two TUN
interfaces does, which shares the parties' cores.
"""

DOUBT = """Over loopback the two columns differ in nothing but cores, pinned apart here and shared by both parties
there, and in what other guests of the host took in between. How far its ratios are from 1 says how much of lan's is
the machine's. Over wan delays dominate, and ratios are the link's."""

TABLE = """
Medians; online in ms, offline in s, ratios to the emulated link, MB of both directions.

| network | ReLUs | ReLU by | link | online | emulated | ratio | offline | emulated | ratio | online MB | \
offline MB | rounds |
|---|---|---|---|---|---|---|---|---|---|---|---|---|"""


class Pair(NamedTuple):
    """A row between namespaces, and the same over an emulated link."""

    real: BenchRow
    emulated: BenchRow

    @property
    def online_ratio(self) -> float:
        return self.real.online_s / self.emulated.online_s

    @property
    def offline_ratio(self) -> float:
        return self.real.offline_s / self.emulated.offline_s


def page(folder: Path) -> str:
    if not all((folder / name).is_file() for name in (NAMESPACES, EMULATED)):
        return f"{HEADER}\nNothing was measured yet.\n"
    kept = json.loads((folder / NAMESPACES).read_text())
    shaped_by, links, control = (kept.pop(key) for key in ("shaped_by", "links", "congestion_control"))
    real = BenchRun.from_json(kept, NAMESPACES)
    emulated = BenchRun.from_json(json.loads((folder / EMULATED).read_text()), EMULATED)
    beside = {_kind(row): row for row in emulated.rows}
    pairs = [Pair(row, beside[_kind(row)]) for row in real.rows]
    assert all(row.equal_to_oracle for pair in pairs for row in pair)
    lines = [HEADER, *(_machine(run) for run in (real, emulated)), ""]
    lines += [f"TCP with {control} as congestion control. Measured before the rows, without TLS:", ""]
    lines += [f"- {link_words(pair, shaped_by)}" for pair in links]
    lines += [TABLE, *map(_line, pairs), "", "## What real TCP and cores of their own change", ""]
    if max(run.machine.load_average[0] for run in (real, emulated)) > AT_REST:
        lines.append("Other work shared the cores: times are rough, and ratios say little except over wan.")
    else:
        lines += [*_changes(pairs), "", DOUBT]
    return "\n".join(lines) + "\n"


def _kind(row: BenchRow) -> tuple[str, str, str]:
    return row.model, row.backend, row.link


def _machine(run: BenchRun) -> str:
    machine, words = run.machine, shlex.join(run.source.command[:3])
    return (
        f"- `{words} ...`: {machine.architecture}, {machine.cores} cores, load {machine.load_average[0]:g} at the "
        f"start, commit {run.source}, medians of {run.rows[0].repeats}, every answer equal to the integer oracle"
    )


def _line(pair: Pair) -> str:
    row, emulated = pair
    cells = (
        row.model,
        f"{row.relus:,}",
        row.backend,
        row.link,
        f"{1e3 * row.online_s:.0f}",
        f"{1e3 * emulated.online_s:.0f}",
        f"{pair.online_ratio:.2f}",
        f"{row.offline_s:.2f}",
        f"{emulated.offline_s:.2f}",
        f"{pair.offline_ratio:.2f}",
        f"{row.online_bytes / 1e6:.2f}",
        f"{row.offline_bytes / 1e6:.1f}",
        str(row.rounds),
    )
    return f"| {' | '.join(cells)} |"


def _changes(pairs: Iterable[Pair]) -> Iterator[str]:
    """A sentence for each link and kind of ReLU: the range of ratios."""
    grouped: dict[tuple[str, str], list[Pair]] = defaultdict(list)
    for pair in pairs:
        grouped[pair.real.link, pair.real.backend].append(pair)
    for (link, backend), ones in grouped.items():
        online = _range(pair.online_ratio for pair in ones)
        offline = _range(pair.offline_ratio for pair in ones)
        yield f"- {link}, {backend}: {online} times the emulated link's time online, {offline} times offline"


def _range(values: Iterable[float]) -> str:
    low, *_, high = sorted([*values] * 2)
    return f"{low:.2f}" if f"{low:.2f}" == f"{high:.2f}" else f"{low:.2f} to {high:.2f}"


if __name__ == "__main__":
    print(page(Path(sys.argv[1]) if len(sys.argv) > 1 else KEPT), end="")
