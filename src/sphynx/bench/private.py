"""Private inference measured in two processes on this machine, beside the same network in the clear: the rows of
`sphynx bench private`.

Seconds are medians over the repeats of all passes; `results.BenchRow` says what they and the bytes are of. Each pass
measures every row in turn: rows of several passes compare even where a machine's speed changes from minute to minute.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import NamedTuple

from sphynx.bench.clear import ClearTime, InTheClear, median_time
from sphynx.bench.private_models import Model, question
from sphynx.bench.private_parties import (
    Job,
    Measured,
    OpenChannel,
    Phase,
    Place,
    joined,
    on_this_machine,
    plain_channel,
    run_parties,
)
from sphynx.bench.results import BenchRow, Layer, PerParty, Span
from sphynx.program.backends import Backend
from sphynx.program.cost.estimate import faster_extensions
from sphynx.program.cost.kept_rates import kept_rates
from sphynx.program.cost.link import LINKS, Link
from sphynx.program.cost.rates import REFERENCE
from sphynx.program.extensions import ExtensionChoice, Extensions
from sphynx.program.folder import load_program
from sphynx.program.security import MODES, Reveal, Security
from sphynx.protocol.channel import Section

# What lies between the parties for a link: the delays that are left to emulate, and where the parties are.
Network = Callable[[Link | None], AbstractContextManager[tuple[Link | None, Place]]]


@contextmanager
def emulated(link: Link | None) -> Iterator[tuple[Link | None, Place]]:
    """Both on this machine, with the link's delays in their channel."""
    yield link, on_this_machine


class Timed(NamedTuple):
    """Measurements of one row in one pass."""

    made: Extensions
    plaintext: ClearTime | None
    server: Measured
    client: Measured


def measure_private(
    models: Sequence[Model],
    backends: Sequence[Backend],
    links: dict[str, Link | None],
    *,
    repeats: int,
    batch: int,
    passes: int = 1,
    open_channel: OpenChannel = plain_channel,
    transport: str = "plain",
    progress: Callable[[str], None] = lambda _: None,
    weight_memory_bytes: int | None = None,
    securities: Sequence[Security] = ("semi-honest",),
    reveals: Sequence[Reveal] = ("logits",),
    ot: ExtensionChoice = "auto",
    network: Network = emulated,
) -> tuple[BenchRow, ...]:
    """A row for each model, mode (a backend, a security that it offers, what is revealed) and link. `transport` names
    the channel; `progress` is told what comes next. `ot` is how OTs are extended; auto: as clients do that ask often
    on such a link."""
    clear = {model.folder: InTheClear(model.design) for model in models if model.design}  # names may be equal
    questions = {model.folder: question(model.folder, batch) for model in models}
    modes = [(backend, security) for backend in backends for security in securities if not MODES[security, backend]]
    kinds = [(model, *mode, what, name) for model in models for mode in modes for what in reveals for name in links]
    timed: list[list[Timed]] = [[] for _ in kinds]
    for number in range(passes):
        for (model, backend, security, reveal, link_name), found in zip(kinds, timed, strict=True):
            which_pass = f", pass {number + 1} of {passes}" if passes > 1 else ""
            progress(f"{model.name}, {backend}, {security}, {reveal}, {link_name}{which_pass}")
            # Beside every row: the machine may be busier than a row ago.
            plaintext = clear[model.folder].time(batch) if model.folder in clear else None
            link = links[link_name]
            made = _extensions(model, backend, link or LINKS["loopback"], ot)
            job = Job(model.folder, backend, batch, repeats, None, open_channel, weight_memory_bytes, security, made)
            with network(link) as (delays, place):
                placed = replace(job, link=delays, place=place, reveal=reveal)
                measured = run_parties(placed, *questions[model.folder])
            found.append(Timed(made, plaintext, *measured))
    return tuple(_row(*kind, transport, batch, found) for kind, found in zip(kinds, timed, strict=True))


def _extensions(model: Model, backend: Backend, link: Link, ot: ExtensionChoice) -> Extensions:
    if ot != "auto":
        return Extensions(ot, ot)
    rates, both = kept_rates() or REFERENCE, frozenset(("down", "up"))
    return faster_extensions(load_program(model.folder), rates, link, backend, ready=both)


def _row(
    model: Model,
    backend: Backend,
    security: Security,
    reveal: Reveal,
    link: str,
    transport: str,
    batch: int,
    passes: Sequence[Timed],
) -> BenchRow:
    plaintext = median_time([one.plaintext for one in passes if one.plaintext])
    server, client = joined([one.server for one in passes]), joined([one.client for one in passes])
    program = load_program(model.folder)
    online = [phase.seconds for phase in client.online]
    offline = [
        max(ours.end_s, theirs.end_s) - min(ours.start_s, theirs.start_s)
        for ours, theirs in zip(client.offline, server.offline, strict=True)
    ]
    online_traffic, offline_traffic = client.online[-1].record.total(), client.offline[-1].record.total()
    offline_s, online_s = statistics.median(offline), statistics.median(online)
    offline_cpu_s, online_cpu_s = (
        statistics.median(ours.cpu_s + theirs.cpu_s for ours, theirs in zip(*phases, strict=True))
        for phases in ((client.offline, server.offline), (client.online, server.online))
    )
    wall_s, cpu_s = (plaintext.seconds, plaintext.cpu_seconds) if plaintext else (None, None)
    return BenchRow(
        model=model.name,
        backend=backend,
        security=security,
        reveal=reveal,
        ot=str(passes[0].made),
        link=link,
        transport=transport,
        plaintext_s=wall_s,
        plaintext_cpu_s=cpu_s,
        torch_s=plaintext.torch_s if plaintext else None,
        onnxruntime_s=plaintext.onnxruntime_s if plaintext else None,
        relus=program.relu_count,
        ring_bits=program.ring_bits,
        batch=batch,
        repeats=len(online),
        offline_s=offline_s,
        online_s=online_s,
        offline_p95_s=p95(offline),
        online_p95_s=p95(online),
        setup_s=_setup_seconds(client),
        offline_cpu_s=offline_cpu_s,
        online_cpu_s=online_cpu_s,
        offline_bytes=offline_traffic.bytes,
        online_bytes=online_traffic.bytes,
        online_bytes_per_relu=online_traffic.bytes / (batch * (program.relu_count + program.comparison_count)),
        he_bytes=server.details["he_bytes"],
        rounds=online_traffic.rounds,
        peak_memory_bytes=PerParty(server.peak_memory_bytes, client.peak_memory_bytes),
        bundle_bytes=PerParty(server.bundle_bytes, client.bundle_bytes),
        server_weights_bytes=server.details["prepared_bytes"],
        server_weights_s=server.details["model_s"],
        equal_to_oracle=all(one.client.details["equal_to_oracle"] for one in passes),
        layers=tuple(_layers(client)),
        timeline=tuple(_timeline(server, client)),
        online_ratio=online_s / wall_s if wall_s else None,
        total_ratio=(offline_s + online_s) / wall_s if wall_s else None,
        online_cpu_ratio=online_cpu_s / cpu_s if cpu_s else None,
        total_cpu_ratio=(offline_cpu_s + online_cpu_s) / cpu_s if cpu_s else None,
    )


def p95(values: list[float]) -> float:
    return sorted(values)[min(len(values) - 1, round(0.95 * (len(values) - 1)))]


def _setup_seconds(client: Measured) -> float:
    assert client.first is not None
    return sum(span.end_s - span.start_s for span in client.first.record.spans if span.section.phase == "setup")


def _layers(client: Measured) -> Iterator[Layer]:
    """The client's bytes, which are the same in every run, and the median of its seconds in each section."""
    for phases in (client.offline, client.online):
        for section in dict.fromkeys(span.section for span in phases[-1].record.spans):
            traffic = phases[-1].record.traffic.get(section)
            sent, received = (traffic.sent_bytes, traffic.received_bytes) if traffic else (0, 0)
            seconds = statistics.median(_section_seconds(phase, section) for phase in phases)
            yield Layer(section.layer, section.phase, sent, received, seconds)


def _section_seconds(phase: Phase, section: Section) -> float:
    return sum(span.end_s - span.start_s for span in phase.record.spans if span.section == section)


def _timeline(server: Measured, client: Measured) -> Iterator[Span]:
    start_s = client.offline[-1].start_s
    for party, measured in (("server", server), ("client", client)):
        for phase in (measured.offline[-1], measured.online[-1]):
            for span in phase.record.spans:
                section = span.section
                yield Span(party, section.phase, section.layer, span.start_s - start_s, span.end_s - start_s)
