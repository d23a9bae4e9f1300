"""Control messages: a round trip for each, and whatever else arrives is refused without being repeated."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sphynx.errors import ConnectionLostError
from sphynx.protocol.channel import local_pair
from sphynx.protocol.verify.plan import CheckPlan
from sphynx.service import session
from sphynx.service.session import (
    SERVICE_VERSION,
    Agree,
    Bye,
    Go,
    Hello,
    Infer,
    Look,
    Message,
    Ping,
    Prepare,
    Programs,
    Stored,
    Welcome,
)

ID = "0123456789abcdef" * 2


@pytest.mark.parametrize(
    "message",
    [
        Look(SERVICE_VERSION),
        Programs(("a", "b"), (2 * ID, 2 * ID), "semi-honest"),
        Hello(SERVICE_VERSION, "ab"),
        Welcome(1, "ab", 10, (ID, ID), 3, 16, "semi-honest"),
        Welcome(1, "ab", 10, (), 0, 16, "malicious-client", 42, 3),
        Prepare(3, "gc", 2, ID),
        Prepare(3, "gc", 2, ID, 1, True, "silent", "softspoken"),
        Welcome(1, "ab", 10, (), 0, 16, "semi-honest", ot="silent"),
        Go(ID, 60.0),
        Stored((ID, ID)),
        Infer(ID, 7),
        Agree((ID,), 7),
        Ping(0, 5),
        Bye(),
    ],
)
def test_messages_cross_the_channel(message: Message) -> None:
    left, right = local_pair()
    session.send(left, message)
    assert session.expect(right, type(message)) == message


def _message(**changes: object) -> bytes:
    return json.dumps({"kind": "prepare", "count": 1, "backend": "gc", "batch": 1, "nonce": ID, **changes}).encode()


def _welcome(**changes: object) -> bytes:
    usual = {"service": 1, "program": "", "program_bytes": 9, "ready": [], "burned": 0, "most": 1}
    return json.dumps({"kind": "welcome", **usual, "security": "semi-honest", **changes}).encode()


def test_a_welcome_says_how_clients_are_checked() -> None:
    assert session.parse(_welcome()) == Welcome(1, "", 9, (), 0, 1, "semi-honest")
    checked = session.parse(_welcome(security="malicious-client", ring_bits=42, functionals=3))
    assert isinstance(checked, Welcome) and checked.check == CheckPlan(42, 3)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{}",
        b"[]",
        b'"prepare"',
        b"\xff\xfe",
        b'{"kind": "prepare"}',
        b'{"kind": ["prepare"]}',
        b'{"kind": "exec", "command": "x"}',
        b"[" * 16_000,
        _message(count=0),
        _message(count=-1),
        _message(count=True),
        _message(count=1.5),
        _message(backend="rot13"),
        _message(batch=0),
        _message(group=0),
        _message(group=257),
        _message(group=True),
        _message(nonce="../../etc/passwd"),
        _message(nonce=ID.upper()),
        _message(more=1),
        b'{"kind": "infer", "bundle": "../../../x", "number": 1}',
        b'{"kind": "infer", "bundle": "' + ID.encode() + b'", "number": 0}',
        b'{"kind": "infer", "bundle": "' + ID.encode() + b'", "number": 9007199254740992}',
        b'{"kind": "ping", "up_bytes": 0, "down_bytes": 99999999999}',
        b'{"kind": "ping", "up_bytes": 0, "down_bytes": -5}',
        b'{"kind": "ping", "up_bytes": -5, "down_bytes": 0}',
        b'{"kind": "agree", "lost": ["x"], "confirmed": 0}',
        b'{"kind": "agree", "lost": [], "confirmed": -1}',
        _welcome(program_bytes=99999999999),
        _welcome(most=0),
        _welcome(security="none"),
        _welcome(security=None),
        _welcome(ring_bits=42, functionals=3),
        _welcome(security="malicious-client"),
        _welcome(security="malicious-client", ring_bits=-42, functionals=3),
        _welcome(security="malicious-client", ring_bits=42, functionals=10**9),
        b'{"kind": "stored", "bundles": ["x"]}',
        b'{"kind": "ping", "up_bytes": ' + b"9" * 10_000 + b', "down_bytes": 0}',
    ],
)
def test_hostile_messages_are_refused_and_not_repeated(raw: bytes) -> None:
    with pytest.raises(ConnectionLostError, match=r"^connection: the peer sent an unexpected message$"):
        session.parse(raw)


@given(
    st.binary(max_size=200) | st.recursive(st.integers() | st.text(), st.lists).map(lambda x: json.dumps(x).encode())
)
def test_random_bytes_are_refused(raw: bytes) -> None:
    with pytest.raises(ConnectionLostError):
        session.parse(raw)


def test_a_message_that_is_too_long_or_out_of_place_ends_the_connection() -> None:
    left, right = local_pair()
    left.send(bytes(session.MAX_MESSAGE_BYTES + 1))
    with pytest.raises(ConnectionLostError, match="bytes where"):
        session.receive(right)
    left, right = local_pair()
    session.send(left, Bye())
    with pytest.raises(ConnectionLostError, match="sent an unexpected message"):
        session.expect(right, Hello)


def test_identifiers_depend_on_both_parties() -> None:
    pairs = [(client, server) for client in "ab" for server in "ab"]
    ids = {session.bundle_id("p", check, *pair, n) for check in ("", "c") for pair in pairs for n in range(2)}
    assert len(ids) == 16 and {len(name) for name in ids} == {16}
    assert len({session.new_nonce() for _ in range(100)}) == 100
