"""A server with a good certificate that sends what no server should: a client refuses it in bounded time and memory,
says why, and spends no bundle."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sphynx.errors import ConnectionLostError, SphynxError
from sphynx.program.parse import MAX_STEPS, MAX_TERMS
from sphynx.protocol.channel import Channel
from sphynx.service import session
from sphynx.service.client import Client
from sphynx.service.credentials import server_context
from sphynx.service.session import MAX_PROGRAM_BYTES, SERVICE_VERSION, Hello, Welcome
from sphynx.service.tls import TlsStream
from tests.service.tiny import tiny_program

Answer = Callable[[Channel, threading.Event], None]


@contextmanager
def answering(authority: Path, answer: Answer) -> Iterator[int]:
    """A listener that shakes hands with one client, reads its hello and goes on as `answer` says, until told to end."""
    over = threading.Event()

    def serve(listener: socket.socket) -> None:
        sock, _ = listener.accept()
        channel = Channel(TlsStream.accept(sock, server_context(authority / "server"), handshake_s=30))
        try:
            session.expect(channel, Hello)
            answer(channel, over)
        except ConnectionLostError:  # the client has left, as it should
            pass
        finally:
            channel.close(wait_s=0)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            over.set()
            thread.join()


def sending(raw: bytes) -> Answer:
    def answer(channel: Channel, over: threading.Event) -> None:
        session.send(channel, Welcome(SERVICE_VERSION, "", len(raw), (), 0, 16, "semi-honest"))
        channel.send(raw)
        over.wait()

    return answer


def changed(change: Callable[[dict[str, Any]], object]) -> bytes:
    program = tiny_program().to_json()
    change(program)
    return json.dumps(program).encode()


def many_steps(program: dict[str, Any]) -> None:
    first = program["steps"][0]
    program["steps"] = [{**first, "name": f"step {n}"} for n in range(MAX_STEPS)] + program["steps"]


def many_terms(program: dict[str, Any]) -> None:
    program["steps"][0]["terms"] *= MAX_TERMS + 1


def much_memory(program: dict[str, Any]) -> None:
    """Each tensor could be; all together are 8 GB of masks."""
    first = program["steps"][0]
    program["steps"] = [{**first, "name": f"step {n}", "shape": [64, 1024, 1024]} for n in range(16)] + program["steps"]


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"[" * MAX_PROGRAM_BYTES, "cannot be read"),
        (b"9" * 5000, "cannot be read"),
        (b"null", "cannot be read"),
        (b"[]", "cannot be read"),
        (changed(many_steps), f"more than {MAX_STEPS:,} steps"),
        (changed(many_terms), f"more than {MAX_TERMS:,} terms"),
        (changed(much_memory), "elements together"),
        (changed(lambda program: program.update(ring_bits=2**70)), "ring"),
        (changed(lambda program: program.update(name="\x1b[2J")), "cannot be printed"),
        (changed(lambda program: program.update(name="another")), "does not match its hash"),
    ],
    ids=("nested", "a long number", "null", "a list", "steps", "terms", "memory", "ring", "terminal", "another"),
)
def test_programs_beyond_reason_are_refused(raw: bytes, why: str, authority: Path, tmp_path: Path) -> None:
    with answering(authority, sending(raw)) as port:
        client = Client("127.0.0.1", port, keys=authority / "alice", state=tmp_path / "client", timeout_s=60)
        with pytest.raises(SphynxError, match=why), client:
            pass


def test_a_program_of_more_bytes_than_any_is_not_waited_for(authority: Path, tmp_path: Path) -> None:
    def answer(channel: Channel, over: threading.Event) -> None:
        message = {"service": SERVICE_VERSION, "program": "", "program_bytes": MAX_PROGRAM_BYTES + 1}
        channel.send(json.dumps({"kind": "welcome", **message, "ready": [], "burned": 0}).encode())
        over.wait()

    with answering(authority, answer) as port:
        client = Client("127.0.0.1", port, keys=authority / "alice", state=tmp_path / "client", timeout_s=60)
        with pytest.raises(ConnectionLostError, match="sent an unexpected message"), client:
            pass


def silent(_: Channel, over: threading.Event) -> None:
    over.wait()


def dripping(channel: Channel, over: threading.Event) -> None:
    """A byte of the frame's header now and then: each one alone would come in time."""
    for byte in b"Sx\3\0\0\1\0\0" + bytes(1000):
        if over.wait(0.2):
            return
        channel._stream.send([bytes([byte])])


@pytest.mark.parametrize("answer", [silent, dripping])
def test_an_answer_that_does_not_come_is_given_up(answer: Answer, authority: Path, tmp_path: Path) -> None:
    with answering(authority, answer) as port:
        client = Client("127.0.0.1", port, keys=authority / "alice", state=tmp_path / "client", timeout_s=1)
        with pytest.raises(ConnectionLostError), client:
            pass
