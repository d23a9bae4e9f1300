"""Parties on one machine, for demonstrations, checks and benchmarks: keys for the occasion, TLS between them, and
a server as a process of its own.
"""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sphynx.errors import SphynxError
from sphynx.program.cost.link import Link
from sphynx.protocol.channel import Channel, Observer
from sphynx.service import keys
from sphynx.service.client import Client
from sphynx.service.credentials import client_context, server_context
from sphynx.service.process import ServerOrder
from sphynx.service.settings import Limits, ServerSettings
from sphynx.service.tls import TlsStream

HOST = "127.0.0.1"
HANDSHAKE_SECONDS = 30.0
STOP_SECONDS = 10.0
TIMEOUT_SECONDS = 600.0  # a party may prepare large weights before it answers


@dataclass(frozen=True)
class LocalKeys:
    """Key folders of one server and one client. Plain paths: it can be handed to another process."""

    server: Path
    client: Path

    def open_channel(self, sock: socket.socket, role: Literal["server", "client"], link: Link | None) -> Channel:
        """One end of a connection over mutual TLS 1.3; a link is emulated by both ends."""
        if role == "server":
            stream = TlsStream.accept(
                sock,
                server_context(self.server),
                handshake_s=HANDSHAKE_SECONDS,
                timeout_s=TIMEOUT_SECONDS,
                link=link,
            )
        else:
            stream = TlsStream.connect(
                sock,
                client_context(self.client),
                HOST,
                handshake_s=HANDSHAKE_SECONDS,
                timeout_s=TIMEOUT_SECONDS,
                link=link,
            )
        return Channel(stream)


def make_local_keys(folder: Path) -> LocalKeys:
    """A new authority in the folder, and keys of a day for both parties."""
    keys.init(folder)
    return LocalKeys(server=_server_keys(folder), client=_client_keys(folder, "client"))


@dataclass(frozen=True)
class LocalServer:
    """A running server. Plain values: it can be handed to another process."""

    port: int
    pid: int
    client_keys: tuple[Path, ...]
    link: Link | None = None

    def client(self, number: int = 0, observer: Observer | None = None) -> Client:
        """The client with the keys of this number, to be entered."""
        return Client(
            HOST, self.port, keys=self.client_keys[number], timeout_s=TIMEOUT_SECONDS, link=self.link, observer=observer
        )


@contextlib.contextmanager
def running_server(
    compiled: Path,
    folder: Path,
    *,
    clients: int = 1,
    link: Link | None = None,
    limits: Limits | None = None,
    processes: int = 1,
) -> Iterator[LocalServer]:
    """Start a server of a compiled program with keys for `clients` clients, and stop it at the end.

    `folder` takes keys, bundles and the server's log; a link is emulated by both ends. `processes` lead conversations.
    """
    authority = folder / "keys"
    keys.init(authority)
    settings = ServerSettings(
        keys=_server_keys(authority),
        listen=f"{HOST}:0",
        state=folder / "server-bundles",
        limits=limits or Limits(),
        link=link,
        processes=processes,
    )
    order = json.dumps(ServerOrder(compiled, settings).to_json())
    command = [sys.executable, "-P", "-m", "sphynx.service.process", order]  # -P: as in `fleet.py`
    # Nothing is written to its standard input, which ends with this process, also by SIGKILL: the server is
    # told to stop, as by SIGTERM, and answers what it has begun.
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        log = threading.Thread(target=_keep_log, args=(server, folder / "server.log"), daemon=True)
        try:
            port = _port(server)
            log.start()
            client_keys = tuple(_client_keys(authority, f"client-{number}") for number in range(clients))
            yield LocalServer(port, server.pid, client_keys, link)
        finally:
            server.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.wait(STOP_SECONDS)
            server.kill()
            if log.ident is not None:
                log.join()  # to the end of the pipe, which is closed next


@contextlib.contextmanager
def connected_client(compiled: Path, folder: Path, observer: Observer | None = None) -> Iterator[Client]:
    """A client in this process, connected over mutual TLS to a server of its own."""
    with running_server(compiled, folder) as server, server.client(observer=observer) as client:
        yield client


def _server_keys(authority: Path) -> Path:
    return keys.issue(authority, "server", hosts=(HOST,), days=1)


def _client_keys(authority: Path, name: str) -> Path:
    return keys.issue(authority, name, hosts=(), days=1)


def _port(server: subprocess.Popen[str]) -> int:
    """From the log line with which the server says that it listens."""
    assert server.stderr is not None
    said = []
    for line in server.stderr:
        said.append(line)
        with contextlib.suppress(ValueError, KeyError, TypeError):
            return int(json.loads(line)["port"])
    raise SphynxError("the server did not start", where="server", remedy="".join(said[-5:]) or "Run sphynx doctor.")


def _keep_log(server: subprocess.Popen[str], path: Path) -> None:
    """Reads on, so that the server never waits for its log to be read."""
    assert server.stderr is not None
    with path.open("w") as log:
        for line in server.stderr:
            log.write(line)
