"""The real server and the real client in forked processes, with what they report, log and use read over pipes.

Forking from a process that has everything imported makes a party start in milliseconds; it must be a process without
threads. A run of root's gives that up first (`become_nobody`), because root may write to what is read-only.

Bundles are watched at `infer` of both parties, not at the ledger: one line with the role, the identifier and a hash of
the material goes to a pipe before the first online byte. An identifier or a material twice is a bundle used twice.
"""

from __future__ import annotations

import _strptime  # noqa: F401 - imported late by `datetime`, when the process may no longer read the installation
import ctypes
import encodings.idna  # noqa: F401 - so is this one by `socket`
import faulthandler
import hashlib
import io
import json
import os
import select
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sphynx.errors import SphynxError
from sphynx.program.backends import Backend
from sphynx.protocol.bundle import Bundle
from sphynx.protocol.inference_client import InferenceClient
from sphynx.protocol.inference_server import InferenceServer
from sphynx.protocol.linear import ServerModel
from sphynx.service.admission import Admission
from sphynx.service.client import Client
from sphynx.service.events import EventLog, place_of
from sphynx.service.listening import PortListener
from sphynx.service.server import Offer, Server
from sphynx.service.settings import Limits
from sphynx.service.store import Store
from sphynx.service.strikes import Strikes
from tests.chaos.strike import Blow, Board, Moments, use_jumping_clock

NOBODY = 65534
QUOTA_BYTES = 1 << 30
PAUSED_S = 0.9  # longer than all of QUICK
PATIENT, QUICK = 20.0, 0.4  # seconds for a message
_PR_SET_PDEATHSIG = 1  # no party outlives the run
Told = dict[str, Any]


@dataclass
class Child:
    """A forked process, its pipe and how it ended."""

    pid: int
    pipe: int
    status: int | None = None
    stopped_at_s: float | None = None
    said: list[Told] = field(default_factory=list)
    _rest: bytes = b""

    def look(self) -> None:
        """Reads what it said, continues it if it has been paused long enough, notices its end."""
        if self.pipe < 0:
            return
        while select.select([self.pipe], [], [], 0)[0] and (part := os.read(self.pipe, 1 << 16)):
            *lines, self._rest = (self._rest + part).split(b"\n")
            self.said += map(json.loads, lines)
        if self.status is not None:
            return
        pid, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED)
        if pid and os.WIFSTOPPED(status):
            self.stopped_at_s = time.monotonic()
        elif pid:
            self.status = status
        if self.stopped_at_s is not None and time.monotonic() > self.stopped_at_s + PAUSED_S:
            self.stopped_at_s = None
            os.kill(self.pid, signal.SIGCONT)

    def told(self, key: str) -> list[Any]:
        return [line[key] for line in self.said if key in line]

    @property
    def crash(self) -> list[str]:
        """Signals that the run did not send."""
        number = os.WTERMSIG(self.status or 0)
        return [] if number in (0, signal.SIGKILL) else [f"ended by {signal.Signals(number).name}"]

    def end(self) -> None:
        """Kills it if it has not ended yet."""
        if self.pipe < 0:
            return
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            _, self.status = os.waitpid(self.pid, 0)
        self.look()
        os.close(self.pipe)
        self.pipe = -1


def fork(run: Callable[[Callable[..., None]], None]) -> Child:
    """`run` gets a function that tells the parent."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        return Child(pid, reader)
    try:
        os.close(reader)
        faulthandler.enable()
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        run(lambda **line: _write(writer, line))
    except SphynxError as error:
        _write(writer, {"error": type(error).__name__, "what": error.what, "remedy": error.remedy})
    except BaseException as error:
        _write(writer, {"unforeseen": type(error).__name__, "place": place_of(error), "what": str(error)[:200]})
    finally:
        os._exit(0)


def become_nobody(folder: Path) -> None:
    """If this process is root's. The folder becomes nobody's as well."""
    if os.geteuid() == 0:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)


def _write(writer: int, line: Told) -> None:
    os.write(writer, json.dumps(line).encode() + b"\n")  # below PIPE_BUF: whole


def serve(
    model: ServerModel, folder: Path, keys: Path, board: Board, blow: Blow | None, message_s: float
) -> Callable[[Callable[..., None]], None]:
    def run(tell: Callable[..., None]) -> None:
        _watch(board, blow, folder, tell)
        limits = Limits(
            workers=2,
            handshake_s=message_s,
            message_s=message_s,
            online_message_s=message_s,
            images_per_hour=1 << 30,
            bundles_per_client=256,
        )
        with Store(folder, quota_bytes=QUOTA_BYTES, shared=True, weights_hash="chaos") as store:
            log = EventLog(_PipedLog(tell))
            listener = PortListener("127.0.0.1", 0)
            server = Server(
                [Offer(model, store)],
                keys=keys,
                listener=listener,
                admission=Admission(limits),
                events=log,
                strikes=Strikes(folder / "strikes"),
            )
            tell(port=listener.port)
            server.serve()

    return run


class _PipedLog(io.StringIO):
    """A pipe takes lines where the disk takes none."""

    def __init__(self, tell: Callable[..., None]) -> None:
        super().__init__()
        self._tell = tell

    def write(self, text: str) -> int:
        self._tell(**json.loads(text))
        return len(text)


@dataclass(frozen=True)
class Question:
    """The task of a client process: prepare and infer on one connection each, as far as it is asked to."""

    port: int
    keys: Path
    folder: Path
    backend: Backend
    pixels: NDArray[np.uint8]
    timeout_s: float
    prepares: bool = True
    infers: bool = True

    def ask(self, board: Board, blow: Blow | None) -> Callable[[Callable[..., None]], None]:
        def run(tell: Callable[..., None]) -> None:
            _watch(board, blow, self.folder, tell)
            if self.prepares:
                with self._client() as client:
                    client.prepare(1, backend=self.backend)
            if self.infers:
                with self._client() as client:
                    if not client.ready:
                        client.prepare(1, backend=self.backend)
                    tell(answer=client.infer(self.pixels).integer_logits.tolist())

        return run

    def _client(self) -> Client:
        where = {"keys": self.keys, "state": self.folder, "quota_bytes": QUOTA_BYTES}
        return Client("127.0.0.1", self.port, timeout_s=self.timeout_s, connect_s=self.timeout_s, **where)  # type: ignore[arg-type]


def _watch(board: Board, blow: Blow | None, folder: Path, tell: Callable[..., None]) -> None:
    use_jumping_clock()
    Moments(board, blow, folder).install()
    for party in (InferenceServer, InferenceClient):
        infer = party.infer

        def watched(self: Any, bundle: Bundle, *rest: Any, infer: Any = infer) -> Any:
            material = hashlib.sha256()
            for name in sorted(bundle.arrays):
                material.update(np.ascontiguousarray(bundle.arrays[name]).tobytes())
            tell(used=f"{bundle.role} {bundle.bundle_id.hex()}", material=f"{bundle.role} {material.hexdigest()}")
            return infer(self, bundle, *rest)

        party.infer = watched


def listening() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))
