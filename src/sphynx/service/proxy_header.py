"""Read for whom a load balancer connects: the PROXY protocol's header, version 2, which it sends before TLS begins.

    signature 12 | version and command 1 | family and transport 1 | length 2 | addresses 12 or 36 | TLVs

Whoever sends it may claim any address. It is therefore read from peers inside the networks that the operator names, and
required of them; from anybody else these bytes are a bad TLS handshake. TCP over IPv4 and IPv6 is taken, and LOCAL, the
proxy's own checks of health, which count for the proxy. TLVs have to be well-formed and are not used.
"""

from __future__ import annotations

import ipaddress
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass

from sphynx.errors import HandshakeError, InputError

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
FIXED_BYTES = 16
MAX_VARIABLE_BYTES = 4096
LOCAL, PROXY = 0x20, 0x21  # version 2 and the command
_ADDRESS_BYTES = {0x11: 4, 0x21: 16}  # TCP over IPv4, TCP over IPv6
_PORT_BYTES = 2
_TLV_HEAD_BYTES = 3  # type and length
_REMEDY = "Let the proxy send PROXY protocol v2 for TCP, or take it out of `proxy_from`."

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True)
class ProxyNetworks:
    """The networks from which headers are read and required."""

    networks: tuple[Network, ...]

    def __contains__(self, address: str) -> bool:
        found = ipaddress.ip_address(address.partition("%")[0])
        if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped:
            found = found.ipv4_mapped
        return any(found in network for network in self.networks)


NO_PROXIES = ProxyNetworks(())


def parse_networks(texts: Sequence[str]) -> ProxyNetworks:
    """Parse texts, each of one network or address, or several with commas between them."""
    parts = [part.strip() for text in texts for part in text.split(",")]
    try:
        return ProxyNetworks(tuple(ipaddress.ip_network(part) for part in parts))
    except ValueError as error:
        raise InputError(str(error), where="`proxy_from`", remedy="Write it as 10.0.0.0/8 or fd00::/8.") from None


def read_proxy_header(sock: socket.socket, deadline: float) -> str | None:
    """The client's address, None for the proxy's own connection. Takes the header from the socket and no byte more."""
    fixed = _receive(sock, FIXED_BYTES, deadline)
    size = variable_bytes(fixed)
    return source_address(fixed, _receive(sock, size, deadline))


def variable_bytes(fixed: bytes) -> int:
    """How long the rest is."""
    if len(fixed) != FIXED_BYTES or fixed[:12] != SIGNATURE or fixed[12] not in (LOCAL, PROXY):
        raise _malformed_error("this is not a PROXY v2 header")
    size = int.from_bytes(fixed[14:], "big")
    if size > MAX_VARIABLE_BYTES:
        raise _malformed_error(f"its length is {size} bytes")
    return size


def source_address(fixed: bytes, variable: bytes) -> str | None:
    if fixed[12] == LOCAL:
        return None  # the standard: whatever follows is skipped
    address_bytes = _ADDRESS_BYTES.get(fixed[13])
    if address_bytes is None:
        raise _malformed_error(f"it is not for TCP over IPv4 or IPv6 but for kind {fixed[13]:#04x}")
    end = 2 * (address_bytes + _PORT_BYTES)
    if len(variable) < end:
        raise _malformed_error("its addresses are incomplete")
    _check_tlvs(variable[end:])
    return str(ipaddress.ip_address(variable[:address_bytes]))


def _check_tlvs(tlvs: bytes) -> None:
    while tlvs:
        end = _TLV_HEAD_BYTES + int.from_bytes(tlvs[1:3], "big")
        if len(tlvs) < end:
            raise _malformed_error("the part after its addresses is incomplete")
        tlvs = tlvs[end:]


def _receive(sock: socket.socket, size: int, deadline: float) -> bytes:
    received = b""
    try:
        while len(received) < size:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise TimeoutError
            sock.settimeout(left_s)
            part = sock.recv(size - len(received))
            if not part:
                raise _malformed_error("the connection ended before it was complete")
            received += part
    except TimeoutError:
        raise _malformed_error("it did not arrive in time") from None
    except OSError as error:
        raise _malformed_error(error.strerror or str(error)) from None
    return received


def _malformed_error(why: str) -> HandshakeError:
    return HandshakeError(f"not a valid PROXY header: {why}", where="connection", remedy=_REMEDY)
