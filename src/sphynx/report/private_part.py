"""Private inference in a report: latency, throughput, the timeline of one inference, traffic, growth, ranges.

Every latency stands with its protocol, link and machine, and is said to be offline, online or total.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sphynx.bench.results import BenchRow, Layer, PerParty, ThroughputRow
from sphynx.report.figures import Chart
from sphynx.report.measured import BenchEntry
from sphynx.report.provenance import made_elsewhere, provenance
from sphynx.report.scaling_figure import scaling_chart
from sphynx.report.sources import RangeCheck, Sources
from sphynx.report.tables import Table
from sphynx.svg.drawing import Drawing, Key, roles
from sphynx.svg.spans import Panel, Piece, SpanRow, Tick, spans
from sphynx.units import bytes_text, seconds_text

PHASES = ("offline", "online")
_SHORT = (
    (".activation/mask", " mask"),
    (".activation.input", " map"),
    (".activation", " ReLU"),
    ("cells.", "cell "),
    ("/mask", " mask"),
)
PLACE = re.compile(r"\[[^\]]*\]")  # of a tensor: one that is sent in pieces has one section for each


def private_table(sources: Sources, present: Mapping[str, Any]) -> Table:
    made = [f"{_describe_origin(row, present)}{row.software and f'; {row.software}'}" for row in sources.private]
    machines = list(dict.fromkeys(made))
    rows = [
        [
            f"{row.name} [{machines.index(where) + 1}]",
            seconds_text(row.values.offline_s),
            seconds_text(row.values.online_s),
            seconds_text(row.values.total_s),
            "-" if row.values.plaintext_s is None else seconds_text(row.values.plaintext_s),
            bytes_text(row.values.offline_bytes),
            bytes_text(row.values.online_bytes),
            str(row.values.rounds),
            memory_text(row.values.peak_memory_bytes),
            _yes(row.values.equal_to_oracle),
        ]
        for row, where in zip(sources.private, made, strict=True)
    ]
    columns = [
        "network, backend, link",
        ">offline",
        ">online",
        ">total",
        ">clear",
        ">offline traffic",
        ">online traffic",
        ">rounds",
        ">memory",
        "exact",
    ]
    notes = [f"[{number}] machine: {machine}" for number, machine in enumerate(machines, 1)]
    notes.append(
        "Both parties on that machine; links other than loopback are emulated. gc: garbled circuits, gmw: GMW on "
        "shared bits; linear maps by homomorphic encryption, offline. total: offline and online. clear: the same "
        "network without privacy. memory: server / client. exact: equal to the integer program, bit for bit."
    )
    return Table(columns, rows, notes)


def throughput_table(sources: Sources, present: Mapping[str, Any]) -> Table:
    machines = list(dict.fromkeys(_describe_origin(row, present) for row in sources.throughput))
    rows = [
        [
            f"{row.name} [{machines.index(_describe_origin(row, present)) + 1}]",
            str(row.values.clients),
            f"{row.values.inferences_per_s:.2f}",
            seconds_text(row.values.latency_s),
            seconds_text(row.values.latency_p95_s),
            seconds_text(row.values.online_s),
            bytes_text(row.values.bytes_per_inference),
            _yes(row.values.equal_to_oracle),
        ]
        for row in sources.throughput
    ]
    columns = ["network, backend, link", ">clients", ">per second", ">latency", ">p95", ">online", ">traffic", "exact"]
    notes = [f"[{number}] machine of server and clients: {machine}" for number, machine in enumerate(machines, 1)]
    notes.append(
        "per second: inferences of all clients together. latency: of one, offline and online, median; online: the part "
        "after the image is there. traffic: both directions, each inference."
    )
    return Table(columns, rows, notes)


def private_charts(sources: Sources, present: Mapping[str, Any]) -> Iterator[Chart]:
    for number, row in enumerate(sources.private):
        if row.values.timeline:
            yield _timeline_chart(row, number, present)
        if row.values.layers:
            yield _traffic_chart(row, number, present)
    for number, run in enumerate(sources.scaling):
        yield scaling_chart(run.results, number, made_elsewhere([run.environment], present))
    for number, check in enumerate(sources.checks):
        yield _range_chart(check, number, present)


def _timeline_chart(row: BenchEntry[BenchRow], number: int, present: Mapping[str, Any]) -> Chart:
    def draw(width: float) -> Drawing:
        timeline = row.values.timeline
        parties = list(dict.fromkeys(span.party for span in timeline))
        colour = roles(_kind(span.name) for span in timeline)
        panels = []
        for phase in PHASES:
            own = [span for span in timeline if span.phase == phase]
            if not own:
                continue
            first = min(span.start_s for span in own)
            rows = [
                SpanRow(
                    party,
                    [
                        Piece(
                            span.start_s - first,
                            span.end_s - first,
                            colour[_kind(span.name)],
                            f"{party}, {phase}: {span.name}, {seconds_text(span.end_s - span.start_s)}",
                        )
                        for span in own
                        if span.party == party
                    ],
                )
                for party in parties
            ]
            panels.append(Panel(phase, rows, seconds_text))
        key = [Key(name, role) for name, role in colour.items()]
        return spans(f"timeline of {row.name}", panels, key, width=width)

    caption = "What each party is doing, including waiting for the other. Each phase has its own axis and starts at 0."
    caption += f" Machine: {_describe_origin(row, present)}."
    return Chart(f"timeline-{number}", f"One private inference: {row.name}", caption, draw)


def _traffic_chart(row: BenchEntry[BenchRow], number: int, present: Mapping[str, Any]) -> Chart:
    def draw(width: float) -> Drawing:
        panels = []
        for phase in PHASES:
            rows = []
            for name, sent, received in _by_tensor(row.values.layers, phase):
                pieces = [
                    Piece(0.0, sent, "s0", f"{name}, {phase}: {bytes_text(sent)} sent"),
                    Piece(sent, sent + received, "s1", f"{name}, {phase}: {bytes_text(received)} received"),
                ]
                rows.append(SpanRow(_short(name), pieces, total=bytes_text(sent + received)))
            if rows:
                panels.append(Panel(phase, rows, bytes_text))
        key = [Key("sent by the client", "s0"), Key("received", "s1")]
        return spans(f"traffic of {row.name}", panels, key, width=width)

    caption = "Bytes by layer. mask: encrypted masks, for the linear maps. The two phases have their own axes."
    caption += f" Machine: {_describe_origin(row, present)}."
    return Chart(f"traffic-{number}", f"Traffic by layer: {row.name}", caption, draw)


def _by_tensor(layers: Sequence[Layer], phase: str) -> list[tuple[str, float, float]]:
    """Name, sent and received bytes; the pieces of one tensor are summed."""
    found: dict[str, tuple[float, float]] = {}
    for layer in layers:
        if layer.phase == phase:
            name = PLACE.sub("", layer.name)
            sent, received = found.get(name, (0.0, 0.0))
            found[name] = sent + layer.sent_bytes, received + layer.received_bytes
    return [(name, sent, received) for name, (sent, received) in found.items()]


def _range_chart(check: RangeCheck, number: int, present: Mapping[str, Any]) -> Chart:
    images = check.found.images

    def draw(width: float) -> Drawing:
        rows = []
        for layer in check.found.layers:
            name, given, used, bound = layer.name, layer.range_bits, layer.used_bits, layer.bound_bits
            pieces = [Piece(0, given, "s6", f"{name}: range of {given} bits", True)] if given else []
            pieces.append(Piece(0, used, "s0", f"{name}: {used} bits used by {images:,} images"))
            worst = Tick(bound, "s5", "diamond", f"{name}: no image can need more than {bound} bits")
            rows.append(SpanRow(_short(name), pieces, [worst]))
        key = [Key("used", "s0"), Key("range", "s6", hollow=True), Key("worst case", "s5", "diamond")]
        return spans(f"ranges of {check.name}", [Panel("", rows, lambda bits: f"{bits:g} bits")], key, width=width)

    caption = f"Used by {images:,} images{f' ({check.data})' if check.data else ''}. "
    caption += "A linear map without a range is a link of a chain, which may wrap around the ring."
    caption += made_elsewhere([check.environment], present)
    return Chart(f"ranges-{number}", f"Use of number ranges: {check.name}", caption, draw)


def _short(tensor: str) -> str:
    """cells.0.activation/mask -> cell 0 mask"""
    for word, short in _SHORT:
        tensor = tensor.replace(word, short)
    return tensor


def _kind(section: str) -> str:
    """Tell by its name what a section of the protocol is about: pieces of one kind share a colour."""
    if section.endswith("/mask"):
        return "encrypted masks"
    if section.endswith("activation"):
        return "ReLU"
    return {"pixels": "image", "logits": "logits"}.get(section.rpartition(".")[2], "linear maps")


def _describe_origin(row: BenchEntry[BenchRow] | BenchEntry[ThroughputRow], present: Mapping[str, Any]) -> str:
    return f"{row.machine}; {provenance(row.environment, present)}"


def memory_text(found: PerParty) -> str:
    """Server / client."""
    server, client = bytes_text(found.server), bytes_text(found.client)
    same_unit = server.split()[-1] == client.split()[-1]
    return f"{server.split()[0] if same_unit else server} / {client}"


def _yes(value: bool) -> str:
    return "yes" if value else "NO"
