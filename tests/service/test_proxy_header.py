"""PROXY protocol v2: read strictly from the proxies that the operator names, and from nobody else."""

from __future__ import annotations

import ipaddress
import json
import socket
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sphynx.errors import HandshakeError, InputError
from sphynx.service.credentials import client_context
from sphynx.service.proxy_header import (
    FIXED_BYTES,
    MAX_VARIABLE_BYTES,
    SIGNATURE,
    parse_networks,
    read_proxy_header,
    source_address,
    variable_bytes,
)
from sphynx.service.settings import Limits
from sphynx.service.tls import TlsStream
from tests.service.test_limits import AwaitedLog, serving

# Written by hand in the standard's layout (not an example of its own): 203.0.113.7 port 4660 to 192.0.2.1 port 443.
TCP4 = bytes.fromhex("0d0a0d0a000d0a515549540a 2111000c cb007107 c0000201 1234 01bb")
LOCAL = SIGNATURE + bytes.fromhex("20000000")
LIMITS = Limits(handshake_s=20)


def parsed(header: bytes) -> str | None:
    size = variable_bytes(header[:FIXED_BYTES])
    if len(header) != FIXED_BYTES + size:
        raise HandshakeError("another length", where="test", remedy="")
    return source_address(header[:FIXED_BYTES], header[FIXED_BYTES:])


def header(source: ipaddress.IPv4Address | ipaddress.IPv6Address, tlvs: list[bytes]) -> bytes:
    family = b"\x11" if source.version == 4 else b"\x21"
    body = source.packed + bytes(len(source.packed) + 4)
    body += b"".join(b"\x04" + len(value).to_bytes(2, "big") + value for value in tlvs)
    return SIGNATURE + b"\x21" + family + len(body).to_bytes(2, "big") + body


def test_a_header_by_hand_and_the_proxys_own_connection() -> None:
    assert parsed(TCP4) == "203.0.113.7"
    assert parsed(LOCAL) is None


@given(st.ip_addresses(), st.lists(st.binary(max_size=40), max_size=4))
def test_addresses_come_through_whatever_else_is_said(
    source: ipaddress.IPv4Address | ipaddress.IPv6Address, tlvs: list[bytes]
) -> None:
    assert parsed(header(source, tlvs)) == str(source)


@given(st.ip_addresses(), st.lists(st.binary(max_size=9), max_size=2), st.data())
def test_every_length_is_checked(
    source: ipaddress.IPv4Address | ipaddress.IPv6Address, tlvs: list[bytes], data: st.DataObject
) -> None:
    """Cut anywhere and said to be that long: whole TLVs may be gone, half of anything is refused."""
    whole = header(source, tlvs)
    addresses_end = FIXED_BYTES + 2 * len(source.packed) + 4
    ends = {addresses_end + sum(3 + len(value) for value in tlvs[:count]) for count in range(len(tlvs) + 1)}
    size = data.draw(st.integers(FIXED_BYTES, len(whole)))
    cut = whole[:14] + (size - FIXED_BYTES).to_bytes(2, "big") + whole[FIXED_BYTES:size]
    if size in ends:
        assert parsed(cut) == str(source)
    else:
        with pytest.raises(HandshakeError, match="incomplete"):
            parsed(cut)


@given(st.binary(max_size=60), st.integers(0, 15), st.integers(0, 255))
def test_anything_else_is_refused_or_read_and_nothing_else(garbage: bytes, place: int, byte: int) -> None:
    changed = bytearray(TCP4)
    changed[place] = byte
    for raw in (garbage, bytes(changed)):
        try:
            found = parsed(raw)
        except HandshakeError:
            continue
        assert found is None or ipaddress.ip_address(found)


@pytest.mark.parametrize(
    ("place", "byte", "why"),
    [
        (0, 0x16, "not a PROXY v2"),
        (12, 0x11, "not a PROXY v2"),  # version 1
        (12, 0x22, "not a PROXY v2"),  # a command that there is not
        (13, 0x00, "not for TCP"),  # unspecified
        (13, 0x12, "not for TCP"),  # UDP
        (13, 0x31, "not for TCP"),  # a Unix socket
        (13, 0x21, "addresses are incomplete"),  # IPv6 in 12 bytes
        (14, 0xFF, "its length is"),
    ],
)
def test_what_is_not_taken(place: int, byte: int, why: str) -> None:
    changed = bytearray(TCP4)
    changed[place] = byte
    with pytest.raises(HandshakeError, match=why):
        parsed(bytes(changed))


def test_a_header_is_taken_from_the_socket_and_no_byte_more() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(TCP4 + b"TLS")
        assert read_proxy_header(ours, time.monotonic() + 20) == "203.0.113.7"
        assert ours.recv(10) == b"TLS"
        with pytest.raises(HandshakeError, match="in time"):
            read_proxy_header(ours, time.monotonic() - 1)
        theirs.sendall(TCP4[:-1])
        theirs.shutdown(socket.SHUT_WR)
        with pytest.raises(HandshakeError, match="ended before"):
            read_proxy_header(ours, time.monotonic() + 20)
    assert MAX_VARIABLE_BYTES < 2**16


def test_networks_as_they_are_written() -> None:
    networks = parse_networks(["10.0.0.0/8, 192.0.2.7", "fd00::/8"])
    inside = ("10.9.8.7", "::ffff:10.9.8.7", "192.0.2.7", "fd00::1%eth0")
    assert all(address in networks for address in inside)
    assert not any(address in networks for address in ("11.0.0.1", "192.0.2.8", "fe80::1", "::ffff:11.0.0.1"))
    for wrong in ("10.0.0.1/8", "10.0.0.0/33", "example.org", ""):
        with pytest.raises(InputError) as refusal:
            parse_networks([wrong])
        assert "10.0.0.0/8" in refusal.value.remedy


def shake_hands(authority: Path, port: int, source: str, first_bytes: bytes) -> TlsStream:
    sock = socket.create_connection(("127.0.0.1", port), source_address=(source, 0))
    sock.sendall(first_bytes)
    return TlsStream.connect(sock, client_context(authority / "alice"), "127.0.0.1", handshake_s=20, timeout_s=20)


def test_a_proxys_word_counts_and_nobody_elses(tmp_path: Path, authority: Path) -> None:
    """The client's address is in the log; without a header the proxy, and with one a stranger, is not let in."""
    log = AwaitedLog('"connected"')
    proxies = parse_networks(["127.0.0.2"])
    with serving(tmp_path, authority, LIMITS, log, proxies=proxies) as (client, server):
        stream = shake_hands(authority, server.port, "127.0.0.2", TCP4)
        assert log.written.wait(timeout=30)
        stream.close()
        for source, first_bytes in (("127.0.0.2", b""), ("127.0.0.1", TCP4)):
            with pytest.raises(HandshakeError):
                shake_hands(authority, server.port, source, first_bytes)
        with client:
            assert client.measure_link().round_trip_s > 0
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    assert [line["address"] for line in lines if line["event"] == "connected"] == ["203.0.113.7", "127.0.0.1"]
    failed = {line["address"]: line["why"] for line in lines if line["event"] == "handshake_failed"}
    assert "not a valid PROXY header" in failed["127.0.0.2"] and "PROXY" not in failed["127.0.0.1"]
