"""Messages between the two parties: framed, versioned, limited in length, every byte and round counted.

A frame is 8 bytes, then the payload:

    "Sx"   magic, 2 bytes
    u8     version of the wire format: of frames, of messages, and of what both parties derive, as RLWE's primes
    u8     kind: 0 = data, 1 = the sender gives up, the payload says why and on a second line what helps
    u32    length of the payload, little endian

A frame of kind 1 is the same in every version and read whatever its version is, so that a peer can be told which one
is spoken here.

Both parties know the size of every data message from public shapes: until the header is checked, no more than that is
read and nothing of the payload is used.
Bytes are counted with their headers, per section (phase and layer), where they are sent and received; what TLS adds
to records is not counted. A round is counted whenever this party waits for a message after it has sent one.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from sphynx.errors import ConnectionLostError, OtherVersionError, PeerGaveUpError
from sphynx.program.cost.link import Link
from sphynx.protocol.transport import MAX_PENDING_BYTES, Buffer, SocketStream

WIRE_VERSION = 17
HEADER_BYTES = 8
MAX_PAYLOAD_BYTES = 2**32 - 1  # what a frame's length can say; message_sizes.py asks before any work is done
MAX_REASON_BYTES = 512
GIVE_UP_LINGER_S = 1.0  # how long the peer has to read the reason before the connection is closed under it
_HEADER = struct.Struct("<2sBBI")
_MAGIC = b"Sx"
_DATA, _GIVES_UP = 0, 1
_AT_ONCE_BYTES = 1 << 18  # payloads up to this have their memory before their header has come


@dataclass
class Traffic:
    sent_bytes: int = 0
    received_bytes: int = 0
    sent_messages: int = 0
    received_messages: int = 0
    rounds: int = 0

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(
            self.sent_bytes + other.sent_bytes,
            self.received_bytes + other.received_bytes,
            self.sent_messages + other.sent_messages,
            self.received_messages + other.received_messages,
            self.rounds + other.rounds,
        )

    @property
    def bytes(self) -> int:
        return self.sent_bytes + self.received_bytes


@dataclass(frozen=True)
class Section:
    """The section to which bytes and seconds belong: ("online", "cell 1/relu")."""

    phase: str
    layer: str


@dataclass(frozen=True)
class Span:
    """When a section ran, on the clock that all processes of a machine share."""

    section: Section
    start_s: float
    end_s: float


@dataclass
class Record:
    """The counts of a channel."""

    traffic: dict[Section, Traffic] = field(default_factory=dict)
    spans: list[Span] = field(default_factory=list)

    def total(self, phase: str | None = None) -> Traffic:
        parts = (part for section, part in self.traffic.items() if phase in (None, section.phase))
        return sum(parts, Traffic())


class Observer(Protocol):
    """Watches one end of a channel, in the thread that uses it: what it is told must be looked at or copied at once.

    It sees what this party itself sends and receives, and can change none of it."""

    def entered(self, section: Section) -> None: ...

    def left(self, span: Span) -> None: ...

    def sent(self, section: Section, parts: Sequence[memoryview]) -> None:
        """A message's payload, the parts back to back."""

    def received(self, section: Section, payload: bytearray) -> None: ...


class Channel:
    observer: Observer | None = None

    def __init__(self, stream: SocketStream, peer: str = "peer") -> None:
        """`peer` is the other party in what is said of it."""
        self.record = Record()
        self._stream, self._peer = stream, peer
        self._section = Section("", "")
        self._counts: Traffic | None = None  # the section's, once looked up
        self._has_sent = False

    @contextlib.contextmanager
    def section(self, phase: str, layer: str = "") -> Iterator[None]:
        """Count what is sent and received inside under this phase and layer."""
        before, self._section, self._counts = self._section, Section(phase, layer), None
        if self.observer is not None:
            self.observer.entered(self._section)
        start_s = time.monotonic()
        try:
            yield
        finally:
            span = Span(self._section, start_s, time.monotonic())
            self.record.spans.append(span)
            self._section, self._counts = before, None
            if self.observer is not None:
                self.observer.left(span)

    @property
    def ahead_bytes(self) -> int:
        """Bytes that may be sent before the peer reads, without waiting: half of the room, the rest for overheads."""
        return self._stream.max_pending_bytes // 2

    def take_record(self) -> Record:
        """Take what was counted since the last call."""
        taken, self.record, self._counts = self.record, Record(), None
        return taken

    def send(self, *parts: Buffer) -> None:
        """One message, the parts back to back. It may still be on its way when this returns."""
        self._send(_DATA, parts)

    def receive(self, size: int, *, timeout_s: float | None = None) -> bytearray:
        """The next message, which has exactly `size` bytes."""
        return self._receive(size, size, timeout_s)

    def receive_up_to(self, limit: int, *, timeout_s: float | None = None) -> bytearray:
        """The next message, whose size is the sender's choice: control messages."""
        return self._receive(0, limit, timeout_s)

    def wait_sent(self) -> None:
        """Wait until what was sent is on its way; raise if the peer does not read."""
        self._stream.wait_sent()

    def is_readable(self) -> bool:
        """Return whether the peer has sent something, or left, that nobody has received."""
        return self._stream.is_readable()

    def give_up(self, reason: str, remedy: str) -> None:
        """Tells the peer why, and what it can do, as far as it still listens, and closes. Neither may hold a secret."""
        with contextlib.suppress(ConnectionLostError):
            self._send(_GIVES_UP, [f"{reason}\n{remedy}".encode(errors="replace")[:MAX_REASON_BYTES]])
            self._stream.linger(GIVE_UP_LINGER_S)
        self.close(wait_s=0)

    def abort(self) -> None:
        """Abort from any thread: whoever sends or receives is told that the connection is lost."""
        self._stream.abort()

    def close(self, *, wait_s: float | None = None) -> None:
        """`wait_s`: for what is still on its way; the stream's timeout unless given."""
        self._stream.close(wait_s=wait_s)

    def _send(self, kind: int, parts: Sequence[Buffer]) -> None:
        wire = [part if isinstance(part, bytes) else _as_bytes(part) for part in parts]
        size = sum(map(len, wire))
        self._stream.send([_HEADER.pack(_MAGIC, WIRE_VERSION, kind, size), *wire])
        counts = self._counts or self._new_counts()
        counts.sent_bytes += HEADER_BYTES + size
        counts.sent_messages += 1
        self._has_sent = True
        if self.observer is not None:
            self.observer.sent(self._section, [memoryview(part) for part in wire])

    def _receive(self, least: int, most: int, timeout_s: float | None) -> bytearray:
        if least < most or most > _AT_ONCE_BYTES:
            size = self._check_size(self._stream.receive(HEADER_BYTES, timeout_s=timeout_s), least, most)
            payload = self._stream.receive(size)
        else:
            payload = self._receive_at_once(most, timeout_s)
        counts = self._counts or self._new_counts()
        counts.received_bytes += HEADER_BYTES + len(payload)
        counts.received_messages += 1
        counts.rounds += self._has_sent
        self._has_sent = False
        if self.observer is not None:
            self.observer.received(self._section, payload)
        return payload

    def _receive_at_once(self, size: int, timeout_s: float | None) -> bytearray:
        """Header and payload, as far as they come together. No more is read than both have if the header is right."""
        frame = bytearray(HEADER_BYTES + size)
        with memoryview(frame) as view:
            filled = self._stream.fill(view, HEADER_BYTES, timeout_s=timeout_s)
            self._check_size(view[:filled], size, size)
            if filled < len(frame):
                self._stream.fill(view[filled:], len(frame) - filled)
        del frame[:HEADER_BYTES]
        return frame

    def _check_size(self, received: Buffer, least: int, most: int) -> int:
        """The length of the payload, from a header and what came with it."""
        magic, version, kind, size = _HEADER.unpack_from(received)
        if magic != _MAGIC:
            raise ConnectionLostError(
                "the peer does not speak this protocol", where="connection", remedy="Check the address and the port."
            )
        if version != WIRE_VERSION and kind != _GIVES_UP:
            raise OtherVersionError(
                f"the peer speaks version {version}",
                where="connection",
                remedy=f"Use the same version of sphynx on both sides (this one speaks version {WIRE_VERSION}).",
            )
        if kind == _GIVES_UP and size <= MAX_REASON_BYTES:
            told = bytes(received[HEADER_BYTES : HEADER_BYTES + size])
            text = (told + self._stream.receive(size - len(told))).decode(errors="replace")
            reason, remedy = ("".join(filter(str.isprintable, line)) for line in text.partition("\n")[::2])
            # A user must see whose advice it is: the peer may be anybody's.
            advice = f"The peer advises: {remedy}" if remedy else "See the peer's log, then connect again."
            raise PeerGaveUpError(reason, where=self._peer, remedy=advice)
        if kind not in (_DATA, _GIVES_UP):
            raise ConnectionLostError(
                f"a message of unknown kind {kind}",
                where="connection",
                remedy="The peer or the connection is broken: start a new session.",
            )
        if kind == _GIVES_UP or not least <= size <= most:
            raise ConnectionLostError(
                f"a message of {size:,} bytes where {most:,} were expected",
                where=f"{self._section.phase} {self._section.layer}".strip() or "connection",
                remedy="The peers disagree on the program: let the client fetch it again.",
            )
        return int(size)

    def _new_counts(self) -> Traffic:
        """Start counting for the section that is entered, which has a row once there is something to count."""
        self._counts = self.record.traffic.setdefault(self._section, Traffic())
        return self._counts


def _as_bytes(part: Buffer) -> memoryview:
    view = memoryview(part)
    return view.cast("B") if view.nbytes else memoryview(b"")  # one without elements cannot be cast


def local_pair(
    link: Link | None = None, timeout_s: float = 60.0, max_pending_bytes: int = MAX_PENDING_BYTES
) -> tuple[Channel, Channel]:
    """Two ends inside one process or its children, without encryption: for tests and benchmarks of the protocol."""
    left, right = (
        SocketStream(end, timeout_s=timeout_s, link=link, max_pending_bytes=max_pending_bytes)
        for end in socket.socketpair()
    )
    return Channel(left), Channel(right)
