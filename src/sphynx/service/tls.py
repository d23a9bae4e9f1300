"""A SocketStream inside TLS 1.3 (RFC 8446), both parties with certificates.

The records are made and read by an `ssl.SSLObject` between two memory buffers; the socket itself is the stream's, so
sending still never waits for the peer to read. The SSL object is not safe for two threads: a lock guards it, and no
socket call happens inside that lock. Sessions are never resumed, so every connection checks the peer's certificate.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from sphynx.errors import HandshakeError
from sphynx.program.cost.link import Link
from sphynx.protocol.transport import Buffer, SocketStream, lost
from sphynx.service.certificate import Role, why_not
from sphynx.service.tls_faults import USUAL_REMEDY, handshake_error, reason_of

SLICE_BYTES = 1 << 18  # sealed and handed over at a time: the kernel sends one slice while the next is sealed
RECORD_BYTES = 1 << 14
MAX_UNASKED_BYTES = 1 << 14  # what TLS itself has to answer; it goes out with the next message, and there may be none


@dataclass(frozen=True)
class Peer:
    """The identity that the other side proved."""

    name: str
    fingerprint: str  # SHA-256 of the certificate
    identity: str  # what stays when the certificate is renewed: SHA-256 of its subject and issuer
    serial: int  # its number at the authority
    expires_at: float  # seconds since 1970


class TlsStream(SocketStream):
    """Made by `accept` or `connect`, which return after the handshake."""

    _owns_sealed = True

    def __init__(
        self,
        sock: socket.socket,
        tls: TlsState,
        *,
        timeout_s: float,
        link: Link | None,
        is_memory_short: Callable[[], bool] = lambda: False,
    ) -> None:
        super().__init__(sock, timeout_s=timeout_s, link=link, is_memory_short=is_memory_short)
        self._tls = tls
        self._raw = memoryview(bytearray(SLICE_BYTES))
        self.peer = tls.peer()

    @classmethod
    def accept(
        cls,
        sock: socket.socket,
        context: ssl.SSLContext,
        *,
        handshake_s: float,
        timeout_s: float = 60.0,
        link: Link | None = None,
        is_memory_short: Callable[[], bool] = lambda: False,
        heard_hello: Callable[[], None] = lambda: None,
    ) -> TlsStream:
        """`heard_hello` is called once the client's first message is complete."""
        tls = TlsState(context, server_side=True, server_hostname=None)
        tls.shake_hands(sock, handshake_s, heard_hello)
        tls.check_peer_is(Role.CLIENT)
        return cls(sock, tls, timeout_s=timeout_s, link=link, is_memory_short=is_memory_short)

    @classmethod
    def connect(
        cls,
        sock: socket.socket,
        context: ssl.SSLContext,
        host: str,
        *,
        handshake_s: float,
        timeout_s: float = 60.0,
        link: Link | None = None,
        where: str = "TLS",
    ) -> TlsStream:
        """Connect to a server and check its role; `where` is the server in what is said of a failure."""
        tls = TlsState(context, server_side=False, server_hostname=host, where=where)
        tls.shake_hands(sock, handshake_s)
        tls.check_peer_is(Role.SERVER)
        return cls(sock, tls, timeout_s=timeout_s, link=link)

    def _seal(self, parts: list[Buffer]) -> Iterable[list[Buffer]]:
        if sum(map(len, parts)) <= SLICE_BYTES:
            return ([self._tls.seal(b"".join(parts))],)
        return self._seal_slices(parts)

    def _seal_slices(self, parts: list[Buffer]) -> Iterator[list[Buffer]]:
        sealed: list[Buffer] = []
        plain_bytes = 0
        for plain in slices(parts):
            sealed.append(self._tls.seal(plain))
            plain_bytes += len(plain)
            if plain_bytes >= SLICE_BYTES:
                yield sealed
                sealed, plain_bytes = [], 0
        if sealed:
            yield sealed

    @property
    def _has_unread(self) -> bool:
        return self._tls.has_unread

    def _fill(self, view: memoryview) -> int | None:
        if self._tls.has_unread:
            return self._tls.read_into(view)
        received = super()._fill(self._raw)
        if not received:
            return received  # the SSL object is not told of the end: it would refuse to send our last words
        # Once, not until there is something: records without data may follow each other for ever, and the clock is
        # the caller's.
        return self._tls.read_into(view, self._raw[:received])


class TlsState:
    """The SSL object, its two buffers and their lock."""

    def __init__(
        self, context: ssl.SSLContext, *, server_side: bool, server_hostname: str | None, where: str = "TLS"
    ) -> None:
        self._where = where
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._object = context.wrap_bio(
            self._incoming, self._outgoing, server_side=server_side, server_hostname=server_hostname
        )
        self._lock = threading.Lock()
        self.has_unread = True  # there may be plain bytes, or the peer's end, beyond what was read last

    def check_peer_is(self, role: Role) -> None:
        """Refuse a certificate that is not marked as one for this role: OpenSSL takes one without marks for any."""
        why = why_not(self._object.getpeercert(binary_form=True) or b"", role)
        if why:
            raise HandshakeError(why, where=self._where, remedy=USUAL_REMEDY)

    def peer(self) -> Peer:
        der = self._object.getpeercert(binary_form=True) or b""
        proved: dict[str, Any] = self._object.getpeercert() or {}
        subject = dict(pair[0] for pair in proved.get("subject", ()))
        return Peer(
            str(subject.get("commonName", "")),
            hashlib.sha256(der).hexdigest(),
            hashlib.sha256(json.dumps([proved.get("subject"), proved.get("issuer")]).encode()).hexdigest(),
            int(proved["serialNumber"], 16),
            ssl.cert_time_to_seconds(proved["notAfter"]),
        )

    def shake_hands(
        self, sock: socket.socket, handshake_s: float, answering: Callable[[], None] = lambda: None
    ) -> None:
        """Within `handshake_s` in all, however the peer spaces its bytes. `answering` is called before every flight."""
        deadline = time.monotonic() + handshake_s
        try:
            while not self._step():
                if self._outgoing.pending:
                    answering()
                self._flush(sock, deadline)
                sock.settimeout(_seconds_left(deadline))
                self._take_in(sock.recv(RECORD_BYTES))
            self._flush(sock, deadline)
        except OSError as error:
            if isinstance(error, ssl.SSLError):
                with contextlib.suppress(OSError):
                    self._flush(sock, deadline)  # the alert that tells the peer why
            raise handshake_error(error, self._where) from None

    def seal(self, plain: Buffer) -> bytes:
        with self._lock:
            view = memoryview(plain)
            try:
                while view:
                    view = view[self._object.write(view) :]
            except ssl.SSLError as error:
                raise lost(reason_of(error)) from None
            return self._outgoing.read()

    def read_into(self, view: memoryview, raw: Buffer = b"") -> int | None:
        """Read the plain bytes that are there, with what just came: None if there are none, 0 after the peer's last."""
        filled, wanted = 0, len(view)
        with self._lock:
            if raw:
                self._take_in(raw)
            try:
                while filled < wanted:
                    count = self._object.read(wanted - filled, view[filled:])
                    if not count:
                        break
                    filled += int(count)
            except ssl.SSLWantReadError:
                self.has_unread = False
                return filled or None
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                self.has_unread = True  # the end, which is read again and again
                return filled
            except ssl.SSLError as error:
                raise handshake_error(error, self._where) from None
            # Known without reading on: being refused is an exception, and most messages are waited for.
            self.has_unread = bool(self._incoming.pending or self._object.pending())
        return filled

    def _take_in(self, raw: Buffer) -> None:
        """None means that the peer closed the socket."""
        if self._outgoing.pending > MAX_UNASKED_BYTES:
            raise HandshakeError("the peer keeps renewing its keys", where=self._where, remedy=USUAL_REMEDY)
        if raw:
            self._incoming.write(raw)
        else:
            self._incoming.write_eof()

    def _step(self) -> bool:
        try:
            self._object.do_handshake()
        except ssl.SSLWantReadError:
            return False
        return True

    def _flush(self, sock: socket.socket, deadline: float) -> None:
        sock.settimeout(_seconds_left(deadline))
        sock.sendall(self._outgoing.read())


def slices(parts: list[Buffer]) -> Iterator[Buffer]:
    """The same bytes in order, at most SLICE_BYTES at a time; short neighbours share a record."""
    short = bytearray()
    for part in parts:
        view = memoryview(part).cast("B")
        if short or len(view) < RECORD_BYTES:
            taken = view[: RECORD_BYTES - len(short)]
            short += taken
            view = view[len(taken) :]
            if len(short) < RECORD_BYTES:
                continue
            yield short
            short = bytearray()
        for start in range(0, len(view), SLICE_BYTES):
            yield view[start : start + SLICE_BYTES]
    if short:
        yield short


def _seconds_left(deadline: float) -> float:
    left_s = deadline - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    return left_s
