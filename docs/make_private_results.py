"""Prints docs/results/private.md: private inference over links and with several clients, from results/private.

python docs/make_private_results.py > docs/results/private.md        (or: make docs)
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from sphynx.bench.results import BenchRow, BenchRun, Machine, Source, ThroughputRow, ThroughputRun
from sphynx.units import bytes_text, seconds_text

RESULTS = Path(__file__).parents[1] / "results" / "private"
UNIT, NO_BREAK = re.compile(r"(?<=\d) (?=[A-Za-zµ])"), "&nbsp;"  # a number stays with its unit
AT_REST = 1.5  # a load average at the start, of two cores
LINKS, CLIENTS = "emulated.json", "clients.json"

HEADER = """# Private inference, measured

Both parties are processes of one machine that talk over mutual TLS 1.3; every answer equals the integer oracle's, bit
for bit. `make docs` writes this page from `results/private/`. The two commands below measure it again, and should
have the machine to themselves. Streams and cells of all budgets are in
[stream.md](stream.md#private-inference-beside-the-cells).
"""
OVER_LINKS = """## Over links

One picture, medians of {repeats}. Online is from the client's first byte to its answer; offline is before there is a
picture. "In the clear" is the same network in fp32 on the same cores, by the faster of torch and ONNX Runtime, and x
is online relative to it. lan is 0.5 ms and 1 Gbit/s, wan 40 ms and 100 Mbit/s, emulated: delays are added between two
processes, so that TCP's own behaviour on such a link (slow start, windows, losses) is not in the rows: [two
hosts](links.md) has the same over real TCP.

{made}

| network | ReLUs | by | link | in the clear | online | x | offline | online bytes | offline bytes | rounds | \
memory, server / client |
|---|---|---|---|---|---|---|---|---|---|---|---|"""
WITH_CLIENTS = """## With several clients

Each client prepares a bundle, uses it, and begins again, so the offline phase is in every inference. Latency is
offline and online together, with the ledger's durable writes. Server and all clients share the machine's cores.

{made}

| network | by | clients | inferences a second | latency | 95 of 100 within | online of it | bytes each | \
CPU of the server / of clients |
|---|---|---|---|---|---|---|---|---|"""


def page() -> str:
    links = BenchRun.from_json(json.loads((RESULTS / LINKS).read_text()), LINKS)
    clients = ThroughputRun.from_json(json.loads((RESULTS / CLIENTS).read_text()), CLIENTS)
    over_links = OVER_LINKS.format(repeats=links.rows[0].repeats, made=_made(links.machine, links.source))
    with_clients = WITH_CLIENTS.format(made=_made(clients.machine, clients.source))
    return "\n".join([HEADER, over_links, *_link_rows(links.rows), "", with_clients, *_client_rows(clients.rows)])


def _made(machine: Machine, source: Source) -> str:
    command = " ".join(("sphynx", *source.command[1:])) if source.command else ""
    load = machine.load_average[0]
    shared = " Other work shared the cores: times are rough, bytes and rounds are not." if load > AT_REST else ""
    return (
        f"    {command}\n\n{machine.architecture}, {machine.cores} cores, {', '.join(machine.cpu_features)}; "
        f"load {load:.1f} at the start; wire {source.wire}.{shared}"
    )


def _link_rows(rows: tuple[BenchRow, ...]) -> Iterator[str]:
    for row in rows:
        memory = row.peak_memory_bytes
        cells = (
            row.model,
            f"{row.relus:,}",
            row.backend,
            row.link,
            "-" if row.plaintext_s is None else seconds_text(row.plaintext_s),
            seconds_text(row.online_s),
            "-" if row.online_ratio is None else f"{row.online_ratio:.1f}",
            seconds_text(row.offline_s),
            bytes_text(row.online_bytes),
            bytes_text(row.offline_bytes),
            str(row.rounds),
            f"{bytes_text(memory.server)} / {bytes_text(memory.client)}",
        )
        assert row.equal_to_oracle, row.model
        yield f"| {' | '.join(UNIT.sub(NO_BREAK, cell) for cell in cells)} |"


def _client_rows(rows: tuple[ThroughputRow, ...]) -> Iterator[str]:
    for row in rows:
        cells = (
            row.model,
            row.backend,
            str(row.clients),
            f"{row.inferences_per_s:.2f}",
            *map(seconds_text, (row.latency_s, row.latency_p95_s, row.online_s)),
            bytes_text(row.bytes_per_inference),
            " / ".join("-" if cpu_s is None else seconds_text(cpu_s) for cpu_s in (row.server_cpu_s, row.client_cpu_s)),
        )
        assert row.equal_to_oracle, row.model
        yield f"| {' | '.join(UNIT.sub(NO_BREAK, cell) for cell in cells)} |"


if __name__ == "__main__":
    print(page())
