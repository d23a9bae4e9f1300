"""`sphynx serve` as a process of its own on this machine, with keys made for the occasion, and its client's side."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from sphynx.errors import SphynxError
from sphynx.service import keys
from sphynx.service.client import Client

HOST = "127.0.0.1"
STOP_SECONDS = 10.0


@contextlib.contextmanager
def connected_client(compiled: Path, folder: Path) -> Iterator[Client]:
    """Starts a server of a compiled program, connects to it over mutual TLS, and stops it at the end.

    `folder` takes keys, bundles and the server's log; the client runs in this process, the server in another.
    """
    authority = folder / "keys"
    keys.init(authority)
    server_keys = keys.issue(authority, "server", hosts=(HOST,), days=1)
    client_keys = keys.issue(authority, "client", hosts=(), days=1)
    command = [sys.executable, "-m", "sphynx.cli.main", "serve", str(compiled), "--keys", str(server_keys)]
    command += ["--listen", f"{HOST}:0", "--metrics-port", "0", "--state", str(folder / "server-bundles")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        log = threading.Thread(target=_keep_log, args=(server, folder / "server.log"), daemon=True)
        try:
            port = _port(server)
            log.start()
            with Client(HOST, port, keys=client_keys) as client:
                yield client
        finally:
            server.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.wait(STOP_SECONDS)
            server.kill()
            if log.ident is not None:
                log.join()  # to the end of the pipe, which is closed next


def _port(server: subprocess.Popen[str]) -> int:
    """From the log line with which the server says that it listens."""
    assert server.stderr is not None
    said = []
    for line in server.stderr:
        said.append(line)
        with contextlib.suppress(ValueError, KeyError, TypeError):
            return int(json.loads(line)["port"])
    raise SphynxError("the server did not start", where="demo", remedy="".join(said[-5:]) or "Run sphynx doctor.")


def _keep_log(server: subprocess.Popen[str], path: Path) -> None:
    """Reads on, so that the server never waits for its log to be read."""
    assert server.stderr is not None
    with path.open("w") as log:
        for line in server.stderr:
            log.write(line)
