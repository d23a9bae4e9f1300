"""Private inference measured in two processes on this machine, beside the same network in the clear: the rows of
`sphynx bench private`.

Seconds are medians over the repeats. `online_s` is the client's, from its first byte to the logits; `offline_s` ends
when both parties have ended. `setup_s` is once per connection and in neither. Bytes are both directions', counted by
the channel with frame headers; `rounds` are the client's waits online.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any

from sphynx.bench.private_models import Model, plaintext_time, question
from sphynx.bench.private_parties import Job, Measured, OpenChannel, Phase, plain_channel, run_parties
from sphynx.program.backends import Backend
from sphynx.program.cost.link import Link
from sphynx.program.files import load_program
from sphynx.protocol.channel import HEADER_BYTES, Section
from sphynx.protocol.linear_plan import plan_program


def measure_private(
    models: Sequence[Model],
    backends: Sequence[Backend],
    links: dict[str, Link | None],
    *,
    repeats: int,
    batch: int,
    open_channel: OpenChannel = plain_channel,
    progress: Callable[[str], None] = lambda _: None,
) -> list[dict[str, Any]]:
    """A row for each model, backend and link. `progress` is told what is measured next."""
    rows = []
    for model in models:
        pixels, expected = question(model.folder, batch)
        for backend in backends:
            for link_name, link in links.items():
                progress(f"{model.name}, {backend}, {link_name}")
                # Beside every row: the machine may be busier than a row ago.
                plaintext = plaintext_time(model.design, batch) if model.design else None
                job = Job(model.folder, backend, batch, repeats, link, open_channel)
                server, client = run_parties(job, pixels, expected)
                row: dict[str, Any] = {
                    "model": model.name,
                    "relu_backend": backend,
                    "link": link_name,
                    "plaintext_s": plaintext.seconds if plaintext else None,
                    "plaintext_cpu_s": plaintext.cpu_seconds if plaintext else None,
                }
                row |= _row(job, server, client)
                rows.append(row | _ratios(row))
    return rows


def _row(job: Job, server: Measured, client: Measured) -> dict[str, Any]:
    program = load_program(job.folder)
    plan = plan_program(program)
    online = [phase.seconds for phase in client.online]
    offline = [
        max(ours.end_s, theirs.end_s) - min(ours.start_s, theirs.start_s)
        for ours, theirs in zip(client.offline, server.offline, strict=True)
    ]
    he_messages = [plan.upload_bytes(upload, job.batch) for upload in plan.distinct_uploads]
    he_messages += [plan.reply_bytes(name, job.batch) for name in plan.convs]
    online_traffic, offline_traffic = client.online[-1].record.total(), client.offline[-1].record.total()
    return {
        "relus": program.relu_count,
        "ring_bits": program.ring_bits,
        "batch": job.batch,
        "repeats": job.repeats,
        "offline_s": statistics.median(offline),
        "online_s": statistics.median(online),
        "offline_p95_s": p95(offline),
        "online_p95_s": p95(online),
        "setup_s": _setup_seconds(client),
        "offline_cpu_s": statistics.median(
            a.cpu_s + b.cpu_s for a, b in zip(client.offline, server.offline, strict=True)
        ),
        "online_cpu_s": statistics.median(a.cpu_s + b.cpu_s for a, b in zip(client.online, server.online, strict=True)),
        "offline_bytes": offline_traffic.bytes,
        "online_bytes": online_traffic.bytes,
        "online_bytes_per_relu": online_traffic.bytes / (job.batch * program.relu_count),
        "he_bytes": sum(he_messages) + HEADER_BYTES * len(he_messages),
        "rounds": online_traffic.rounds,
        "peak_memory_bytes": {"server": server.peak_memory_bytes, "client": client.peak_memory_bytes},
        "bundle_bytes": {"server": server.bundle_bytes, "client": client.bundle_bytes},
        "server_weights_bytes": server.details["prepared_bytes"],
        "server_weights_s": server.details["model_s"],
        "equal_to_oracle": client.details["equal_to_oracle"],
        "layers": _layers(client),
        "timeline": _timeline(server, client),
    }


def _ratios(row: dict[str, Any]) -> dict[str, float | None]:
    """To the clear, by the wall clock; by CPU time of both parties where other work shares the machine."""
    wall_s, cpu_s = row["plaintext_s"], row["plaintext_cpu_s"]
    return {
        "online_ratio": row["online_s"] / wall_s if wall_s else None,
        "total_ratio": (row["offline_s"] + row["online_s"]) / wall_s if wall_s else None,
        "online_cpu_ratio": row["online_cpu_s"] / cpu_s if cpu_s else None,
        "total_cpu_ratio": (row["offline_cpu_s"] + row["online_cpu_s"]) / cpu_s if cpu_s else None,
    }


def p95(values: list[float]) -> float:
    return sorted(values)[min(len(values) - 1, round(0.95 * (len(values) - 1)))]


def _setup_seconds(client: Measured) -> float:
    assert client.first is not None
    return sum(span.end_s - span.start_s for span in client.first.record.spans if span.section.phase == "setup")


def _layers(client: Measured) -> list[dict[str, Any]]:
    """The client's bytes, which are the same in every run, and the median of its seconds in each section."""
    layers = []
    for phases in (client.offline, client.online):
        for section in dict.fromkeys(span.section for span in phases[-1].record.spans):
            traffic = phases[-1].record.traffic.get(section)
            layers.append(
                {
                    "name": section.layer,
                    "phase": section.phase,
                    "sent_bytes": traffic.sent_bytes if traffic else 0,
                    "received_bytes": traffic.received_bytes if traffic else 0,
                    "seconds": statistics.median(_section_seconds(phase, section) for phase in phases),
                }
            )
    return layers


def _section_seconds(phase: Phase, section: Section) -> float:
    return sum(span.end_s - span.start_s for span in phase.record.spans if span.section == section)


def _timeline(server: Measured, client: Measured) -> list[dict[str, Any]]:
    """The last inference, from the start of its offline phase."""
    start_s = client.offline[-1].start_s
    return [
        {
            "party": party,
            "phase": span.section.phase,
            "name": span.section.layer,
            "start_s": span.start_s - start_s,
            "end_s": span.end_s - start_s,
        }
        for party, measured in (("server", server), ("client", client))
        for phase in (measured.offline[-1], measured.online[-1])
        for span in phase.record.spans
    ]
