"""Parties that answer the page: a server elsewhere, asked with the user's keys, or one started here, as a process of
its own, for a network whose weights are here too. Both are asked over mutual TLS by the same client.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from sphynx.api.asking import Client
from sphynx.api.compiled import Compiled
from sphynx.app.in_the_clear import InTheClear
from sphynx.protocol.channel import Observer
from sphynx.service.local import HOST, TIMEOUT_SECONDS, running_server
from sphynx.zoo.shipped import model_path


@dataclass(frozen=True)
class Parties:
    client: Client
    server: str  # where it is, in words
    name: str
    clear: InTheClear | None = None  # where the weights are here


@contextlib.contextmanager
def elsewhere(
    server: str, keys: Path, state: Path | None, observer: Observer, tell: Callable[[str], None]
) -> Iterator[Parties]:
    with Client(server, keys=keys, state=state, observer=observer, warn=lambda why: tell(f"warning: {why}")) as client:
        yield Parties(client, server, client.program.name or "network")


@contextlib.contextmanager
def here(model: str | Path, observer: Observer, tell: Callable[[str], None]) -> Iterator[Parties]:
    """`model` is a compiled folder or a model's name. Keys and bundles are made for the occasion."""
    compiled = Compiled.load(model, lambda update: tell(update.note))
    assert compiled.folder is not None
    with (
        tempfile.TemporaryDirectory(prefix="sphynx-app-") as folder,
        running_server(compiled.folder, Path(folder)) as server,
        Client(
            f"{HOST}:{server.port}", keys=server.client_keys[0], timeout_s=TIMEOUT_SECONDS, observer=observer
        ) as client,
    ):
        clear = InTheClear(compiled, float_run(model))
        yield Parties(client, "a process of its own on this machine", compiled.name, clear)


def float_run(model: str | Path) -> Path | None:
    """Find the float network of a model by name; a compiled folder does not say where its own is."""
    return None if Path(model).exists() else model_path(model)
