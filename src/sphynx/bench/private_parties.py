"""The two processes of a private-inference benchmark: a server with the weights, a client with the public program.

Both run prepare and infer in step, `repeats` times after one that is not counted and that makes the session's set-up.
What comes back is what each party measured by itself: when, how many bytes, how much memory. Nothing of it is a secret.
The channel is the caller's choice (`open_channel`), so that the same benchmark runs with or without encryption.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sphynx.bench.workers import tell, told_by, told_by_all, values_of, workers
from sphynx.program.backends import Backend
from sphynx.program.cost.link import Link
from sphynx.program.extensions import SOFTSPOKEN, Extensions
from sphynx.program.folder import load_program, load_weights
from sphynx.program.labels import find_labels
from sphynx.program.revealing import revealed
from sphynx.program.security import Reveal, Security
from sphynx.protocol.bundle import ID_BYTES, Bundle, Role
from sphynx.protocol.channel import HEADER_BYTES, Channel, Record
from sphynx.protocol.inference_client import InferenceClient
from sphynx.protocol.inference_server import InferenceServer
from sphynx.protocol.linear import ServerModel
from sphynx.protocol.linear_plan import ProgramPlan
from sphynx.protocol.transport import SocketStream
from sphynx.protocol.verify.plan import BUNDLE_IMAGES, CheckPlan, plan_security
from sphynx.system import peak_memory_bytes

OpenChannel = Callable[[socket.socket, Role, Link | None], Channel]
Result = TypeVar("Result")
Party = Callable[[Connection], Result]
Place = Callable[[Role], str]  # called in a party's process before it does anything; gives the server's address
CONNECT_SECONDS = 600.0  # the server prepares its weights before it listens


def plain_channel(sock: socket.socket, role: Role, link: Link | None) -> Channel:  # noqa: ARG001 - one of OpenChannel
    """Without encryption: the protocol's own cost."""
    return Channel(SocketStream(sock, timeout_s=CONNECT_SECONDS, link=link))


def on_this_machine(role: Role) -> str:  # noqa: ARG001 - one of Place
    return "127.0.0.1"


@dataclass(frozen=True)
class Job:
    """One row of the benchmark. It is sent to both processes, so it holds plain values only."""

    folder: Path
    backend: Backend
    batch: int
    repeats: int
    link: Link | None
    open_channel: OpenChannel = plain_channel
    weight_memory_bytes: int | None = None
    security: Security = "semi-honest"
    made: Extensions = SOFTSPOKEN
    place: Place = on_this_machine
    reveal: Reveal = "logits"

    @property
    def bundle_ids(self) -> list[bytes]:
        """Both parties' names of the bundles; the first is not counted."""
        return [run.to_bytes(ID_BYTES, "little") for run in range(self.repeats + 1)]


@dataclass(frozen=True)
class Phase:
    """On the clock that all processes of a machine share."""

    start_s: float
    end_s: float
    cpu_s: float
    record: Record

    @property
    def seconds(self) -> float:
        return self.end_s - self.start_s


@dataclass
class Measured:
    """Phases that one party measured. `offline[i]` and `online[i]` belong to one inference; `first` is not counted."""

    first: Phase | None = None
    offline: list[Phase] = field(default_factory=list)
    online: list[Phase] = field(default_factory=list)
    peak_memory_bytes: int = 0
    bundle_bytes: int = 0
    details: dict[str, Any] = field(default_factory=dict)


def joined(runs: Sequence[Measured]) -> Measured:
    """One party's measurements of several runs of a job; details are those of the first."""
    return Measured(
        first=runs[0].first,
        offline=[phase for run in runs for phase in run.offline],
        online=[phase for run in runs for phase in run.online],
        peak_memory_bytes=max(run.peak_memory_bytes for run in runs),
        bundle_bytes=runs[0].bundle_bytes,
        details=runs[0].details,
    )


def run_parties(job: Job, pixels: NDArray[np.uint8], expected: NDArray[np.int64]) -> tuple[Measured, Measured]:
    """(server's, client's) measurements. `expected` are logits; `details["equal_to_oracle"]` of the client's says
    whether all that every inference reveals is as they are."""
    if job.reveal == "label":
        expected = find_labels(expected)[:, None]
    ask = partial(_ask, job=job, pixels=pixels, expected=expected)
    return run_pair(
        partial(_serve, job=job), ask, where="bench private", remedy="Run it again with `repeat=1` and one model."
    )


def run_pair(serve: Party[Result], ask: Party[Result], *, where: str, remedy: str) -> tuple[Result, Result]:
    """Run both in processes of their own; return their results. The first accepts, the second connects.

    Where one fails, the other is ended at once: a server would wait long for a client that never connects.
    """
    values = partial(values_of, where=where, remedy=remedy)
    with workers((serve,), (ask,)) as (server_end, client_end):
        wait([server_end, client_end])
        if client_end.poll():  # before it is told the port it has nothing to say but that it failed
            values([told_by(client_end)])
        (port,) = values([told_by(server_end)])
        tell(client_end, port)
        served, asked = values(told_by_all([server_end, client_end]))
    return served, asked


def accept_client(told: Connection, open_channel: OpenChannel, link: Link | None, host: str = "127.0.0.1") -> Channel:
    """The server's end, once the other process has been told the port and has connected."""
    with socket.create_server((host, 0)) as listener:
        told.send(("done", listener.getsockname()[1]))
        listener.settimeout(CONNECT_SECONDS)
        return open_channel(listener.accept()[0], "server", link)


def connect_to_server(
    told: Connection, open_channel: OpenChannel, link: Link | None, host: str = "127.0.0.1"
) -> Channel:
    """The client's end."""
    return open_channel(socket.create_connection((host, told.recv())), "client", link)


def _serve(told: Connection, job: Job) -> Measured:
    host = job.place("server")
    given = load_program(job.folder)
    program = revealed(given, job.reveal)
    started = time.monotonic()
    weights = load_weights(job.folder, given)
    check = plan_security(job.security, program, weights, images=max(BUNDLE_IMAGES, job.batch))
    model = ServerModel(program, weights, memory_bytes=job.weight_memory_bytes, check=check)
    details = {"model_s": time.monotonic() - started, "prepared_bytes": model.prepared_bytes}
    details["he_bytes"] = _he_bytes(model.maps_for(job.batch).plan, job.batch)
    channel = accept_client(told, job.open_channel, job.link, host)
    party = InferenceServer(model, channel)
    _tell_check(channel, check)
    measured = Measured(details=details)
    for bundle_id in job.bundle_ids:
        prepare = partial(party.prepare, bundle_id, job.backend, job.batch, job.made)
        prepare_and_infer(channel, measured, prepare, party.infer)
    channel.close()
    measured.peak_memory_bytes = peak_memory_bytes()
    return measured


def _ask(told: Connection, job: Job, pixels: NDArray[np.uint8], expected: NDArray[np.int64]) -> Measured:
    host = job.place("client")
    program = revealed(load_program(job.folder), job.reveal)
    channel = connect_to_server(told, job.open_channel, job.link, host)
    party = InferenceClient(program, channel, check=_receive_check(channel))
    measured, equal = Measured(), True
    for bundle_id in job.bundle_ids:
        prepare = partial(party.prepare, bundle_id, job.backend, job.batch, job.made)
        logits = prepare_and_infer(channel, measured, prepare, partial(party.infer, pixels=pixels))
        equal = equal and np.array_equal(logits, expected)
    channel.close()
    measured.details["equal_to_oracle"] = equal
    measured.peak_memory_bytes = peak_memory_bytes()
    return measured


def _he_bytes(plan: ProgramPlan, batch: int) -> int:
    """Count what the linear maps of one preparation send, frames included."""
    whole = plan.whole(batch)
    messages = [plan.upload_bytes(upload, whole) for upload in plan.distinct_uploads]
    messages += [plan.reply_bytes(name, whole) for name in plan.convs]
    return sum(messages) + HEADER_BYTES * len(messages)


def _tell_check(channel: Channel, check: CheckPlan | None) -> None:
    channel.send(bytes((check.ring_bits, check.functionals) if check else (0, 0)))


def _receive_check(channel: Channel) -> CheckPlan | None:
    ring_bits, functionals = channel.receive(2)
    return CheckPlan(ring_bits, functionals) if functionals else None


def in_step(channel: Channel) -> None:
    """Neither party starts a phase before the other has ended the last; not counted."""
    channel.send(b".")
    channel.receive(1)
    channel.take_record()


def timed(channel: Channel, work: Callable[[], Any]) -> tuple[Phase, Any]:
    cpu_s, start_s = time.process_time(), time.monotonic()
    result = work()
    end_s = time.monotonic()
    return Phase(start_s, end_s, time.process_time() - cpu_s, channel.take_record()), result


def prepare_and_infer(
    channel: Channel, measured: Measured, prepare: Callable[[], Bundle], infer: Callable[[Bundle], Any]
) -> Any:
    """Measure both phases of one inference; return what `infer` does. The bundle is gone before the next is made: two
    at once would be the peak of memory."""
    in_step(channel)
    offline, bundle = timed(channel, prepare)
    in_step(channel)
    online, result = timed(channel, partial(infer, bundle))
    if measured.first is None:
        measured.first = offline
    else:
        measured.offline.append(offline)
        measured.online.append(online)
    measured.bundle_bytes = bundle.bytes
    return result
