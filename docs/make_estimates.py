"""Prints docs/results/estimates.md: what `sphynx estimate` says beside what was measured.

python docs/make_estimates.py > docs/results/estimates.md        (or: make docs)
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.beside import STEADY, Beside, read_kept

KEPT = HERE.parent / "results" / "speed" / "estimates.json"
WITHIN = 0.25
AT_REST = 1.5  # a load average at the start, of two cores

HEADER = """# Estimates beside measurements

What `sphynx estimate` says beside what `sphynx bench private` measures, for networks whose times had no part in any
rate. Each rate is [measured by itself](../compiler.md#estimates): none is fitted to these rows. A row's rates are the
means of those measured before it and after it, as a machine's speed changes between rows. `make docs` writes this page
from `results/speed/estimates.json`:

    pip install --no-deps torchvision==0.28.0
    python -m benchmarks.estimates stream-cifar100-25k sphynx-cifar100-25k sphynx-cifar100-51k \\
        stream-chest-xray-11k resnet18-64 squeezenet1_1-64 shufflenet_v2_x1_0-64 mobilenet_v3_small-64 \\
        --backend gmw --link loopback,lan -o results/speed/estimates.json
    python -m benchmarks.estimates stream-cifar100-25k sphynx-cifar100-25k --backend gc --link loopback,lan \\
        --add -o results/speed/estimates.json
    python -m benchmarks.estimates stream-cifar100-25k stream-chest-xray-11k --backend gc,gmw --link wan \\
        --add -o results/speed/estimates.json
"""

TABLE = """
Seconds and ratios are medians of the repeats; *CPU* is that of both parties offline; beyond
loopback it has the emulation of the link in it, which estimates have not. *Drift*: by how much the machine's
speed changed meanwhile; a row with more than {steady:.0%} was measured again, and its steadiest attempt is here.

| network | ReLU by | link | online estimated, ms | measured | ratio | offline estimated, ms | measured | ratio | \
CPU ratio | drift |
|---|---|---|---|---|---|---|---|---|---|---|"""


def page(kept: Path) -> str:
    if not kept.is_file():
        return f"{HEADER}\nNothing was measured yet.\n"
    run = read_kept(kept)
    machine = run.machine
    busy = machine.load_average[0] > AT_REST
    shared = " At that load other work may have shared the cores; estimates are of cores at rest." if busy else ""
    made = (
        f"{machine.architecture}, {machine.cores} cores, load {machine.load_average[0]:g} at the start, commit "
        f"{run.source}, wire {run.source.wire}.{shared}"
    )
    lines = [HEADER, made, *_summary(run.rows), TABLE.format(steady=STEADY), *map(_line, run.rows)]
    return "\n".join(lines) + "\n"


def _summary(rows: tuple[Beside, ...]) -> Iterator[str]:
    ratios: dict[str, Callable[[Beside], float]] = {
        "online": lambda row: row.online_ratio,
        "offline": lambda row: row.offline_ratio,
        "CPU offline, loopback": lambda row: row.offline_cpu_ratio,
    }
    yield ""
    yield f"| estimated to measured | rows within {WITHIN:.0%} | lowest | median | highest |"
    yield "|---|---|---|---|---|"
    for name, of in ratios.items():
        found = sorted(of(row) for row in rows if row.link == "loopback" or "CPU" not in name)
        if not found:
            continue
        near = sum(1 - WITHIN <= ratio <= 1 + WITHIN for ratio in found)
        yield (
            f"| {name} | {near} of {len(found)} | {found[0]:.2f} | {statistics.median(found):.2f} | {found[-1]:.2f} |"
        )


def _line(row: Beside) -> str:
    cells = (
        row.network,
        row.backend if row.ot == "softspoken" else f"{row.backend}, {row.ot}",
        row.link,
        f"{1e3 * row.estimated_online_s:.1f}",
        f"{1e3 * row.online_s:.1f}",
        f"{row.online_ratio:.2f}",
        f"{1e3 * row.estimated_offline_s:.0f}",
        f"{1e3 * row.offline_s:.0f}",
        f"{row.offline_ratio:.2f}",
        f"{row.offline_cpu_ratio:.2f}",
        f"{row.drift:.2f}",
    )
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    print(page(Path(sys.argv[1]) if len(sys.argv) > 1 else KEPT), end="")
