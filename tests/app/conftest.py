"""A small network that reads colour pictures of 16 by 16, its server in a thread of this process, and the page's parts.

The server's ends of all channels keep what they receive as the masked picture: the server's own record.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest

import sphynx
from sphynx.app.bulletin import Bulletin
from sphynx.app.desk import Desk
from sphynx.app.in_the_clear import InTheClear
from sphynx.app.parties import Parties
from sphynx.app.watch import Watch
from sphynx.app.web import App
from sphynx.program.cost.rates import REFERENCE
from sphynx.program.folder import save_program, save_weights
from sphynx.program.ir import INPUT, Linear, Output, Program, Relu, Term
from sphynx.protocol.channel import Channel, Section, Span
from sphynx.protocol.inference import MASKED_PICTURE
from sphynx.service import conversation
from tests.app.devtools import CHROMIUM, Browser
from tests.program.programs import random_weights
from tests.service.authority import make_authority

Ask = Callable[..., tuple[int, dict[str, Any]]]


def small_program(name: str = "small", classes: tuple[str, ...] = ("cat", "dog", "bird"), channels: int = 3) -> Program:
    steps = (
        Linear("first", (Term(INPUT, 4, 4, 4),), sphynx.Shape(2, 4, 4), 4, 24),
        Relu("relu", "first", 3),
        Linear("logits", (Term("relu", 4, 4),), sphynx.Shape(3, 1, 1), 16, 32),
    )
    outputs = (Output("logits", "logits", class_names=classes),)
    return Program(sphynx.Shape(channels, 16, 16), steps, 34, 8, name=name, outputs=outputs)


class ServersRecord:
    """An observer of the server's end."""

    def __init__(self) -> None:
        self.masked_pictures: list[bytes] = []

    def received(self, section: Section, payload: bytearray) -> None:
        if section == MASKED_PICTURE:
            self.masked_pictures.append(bytes(payload))

    def entered(self, section: Section) -> None:
        """Ignore sections."""

    def left(self, span: Span) -> None:
        """Ignore spans."""

    def sent(self, section: Section, parts: Sequence[memoryview]) -> None:
        """Ignore what is sent."""


@dataclass
class Scene:
    desk: Desk
    app: App
    compiled: sphynx.Compiled
    record: ServersRecord = field(default_factory=ServersRecord)

    def request(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, bytes]:
        """Below the token."""
        address = urlsplit(self.app.url)
        connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=60)
        try:
            connection.request(method, address.path + path, body, headers or {})
            reply = connection.getresponse()
            return reply.status, reply.read()
        finally:
            connection.close()

    def ask(self, picture: bytes, options: str = "backend=gmw") -> dict[str, Any]:
        status, said = self.request("POST", f"ask?{options}", picture)
        assert status == 200, said
        return dict(json.loads(said))


@pytest.fixture(scope="session")
def compiled_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, program = tmp_path_factory.mktemp("app") / "compiled", small_program()
    save_program(folder, program)
    save_weights(folder, program, random_weights(program))
    return folder


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_authority(tmp_path_factory.mktemp("keys") / "keys")


@pytest.fixture(scope="module")
def scene(compiled_folder: Path, authority: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Nothing is prepared ahead: what a test asks for is all that happens."""
    compiled, record, state = sphynx.Compiled.load(compiled_folder), ServersRecord(), tmp_path_factory.mktemp("state")

    class RecordedChannel(Channel):
        observer = record

    with pytest.MonkeyPatch.context() as patch, ExitStack() as opened:
        patch.setattr(conversation, "Channel", RecordedChannel)
        server = opened.enter_context(
            sphynx.Server(compiled, keys=authority / "server", listen="127.0.0.1:0", state=state / "server")
        )
        watch, keys = Watch(), authority / "alice"
        client = opened.enter_context(sphynx.Client(server.address, keys=keys, state=state / "client", observer=watch))
        parties = Parties(client, server.address, "small", InTheClear(compiled))
        desk = opened.enter_context(Desk(parties, watch, Bulletin(), lambda: REFERENCE, keep_ready=0))
        app = App([desk])
        opened.callback(app.close)
        yield Scene(desk, app, compiled, record)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("there is no chromium on the PATH")
    with Browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def pixels(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (3, 16, 16), np.uint8)
