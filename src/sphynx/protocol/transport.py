"""A connected socket as a byte stream: sending never waits for the peer to read, receiving has a deadline.

`send` hands over what the kernel takes at once; a writer thread sends the rest in order. Two parties that both send a
large message first and read afterwards therefore cannot block each other. What may wait unsent is bounded: beyond
`max_pending_bytes` `send` waits; where many streams share a memory and it is short, also until no more waits than
before. `send` and `receive` may be called by two threads at the same time.

An emulated `Link` delays every send by half a round trip and by the bytes before it, for benchmarks on one machine.
`_seal` and `_fill` are what a stream with encryption replaces. `stop_reading` and `abort` may be called by any thread.
Within `ending_within` nothing is waited for beyond a time that all messages have together.
"""

from __future__ import annotations

import contextlib
import math
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from sphynx.errors import ConnectionLostError
from sphynx.program.cost.link import Link
from sphynx.threads import Worker

MAX_PENDING_BYTES = 1 << 27
UNSHARED_PENDING_BYTES = 1 << 20  # what every stream may keep, however short the memory is
SOCKET_BUFFER_BYTES = 1 << 22
SLOWEST_BYTES_PER_S = 64 << 10  # a peer slower than this for a whole message is given up
MAX_LINGER_BYTES = 1 << 28
_BUFFERS_AT_ONCE = 64

Buffer = bytes | bytearray | memoryview


class SocketStream:
    _owns_sealed = False  # whether what `_seal` gives stays unchanged after `send` returns

    def __init__(
        self,
        sock: socket.socket,
        *,
        timeout_s: float = 60.0,
        link: Link | None = None,
        max_pending_bytes: int = MAX_PENDING_BYTES,
        is_memory_short: Callable[[], bool] = lambda: False,
    ) -> None:
        """`is_memory_short` is asked by `send` once there is more than UNSHARED_PENDING_BYTES."""
        sock.setblocking(False)
        if sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            sock.setsockopt(socket.SOL_SOCKET, option, SOCKET_BUFFER_BYTES)
        self.timeout_s = timeout_s
        self.max_pending_bytes = max_pending_bytes
        self._is_memory_short = is_memory_short
        self._sock = sock
        self._link = link
        self._link_free_at = 0.0
        self._pending: deque[tuple[float, memoryview]] = deque()  # due time, what is left of it
        self._pending_bytes = 0
        self._taken_at = 0.0  # when the kernel last took something from the writer
        self._sending = threading.Lock()
        self._guard = threading.RLock()
        self._changed = threading.Condition(self._guard)
        self._failure: str | None = None
        self._closing = False
        self._writer: Worker | None = None
        self._ends_at = math.inf
        self._readable = select.poll()
        self._readable.register(sock, select.POLLIN)

    @property
    def _has_unread(self) -> bool:
        """Return whether `_fill` may have something that is not in the socket any more."""
        return False

    @property
    def pending_bytes(self) -> int:
        """Sent, and not yet taken by the kernel."""
        return self._pending_bytes

    @contextmanager
    def ending_within(self, limit_s: float) -> Iterator[None]:
        """All that is sent and received inside is done by then, however the peer spaces its messages."""
        self._ends_at = time.monotonic() + limit_s
        try:
            yield
        finally:
            self._ends_at = math.inf

    def send(self, parts: list[Buffer]) -> None:
        """The parts, each a row of bytes, back to back."""
        with self._sending:
            for sealed in self._seal(parts):
                self._hand_over(sealed)

    def receive(self, size: int, *, timeout_s: float | None = None) -> bytearray:
        """Exactly `size` bytes."""
        buffer = bytearray(size)
        self.fill(memoryview(buffer), size, timeout_s=timeout_s)
        return buffer

    def fill(self, view: memoryview, least: int, *, timeout_s: float | None = None) -> int:
        """At least `least` bytes into the view, and what else of it is there by then; how many. The peer's time begins
        when it has what was sent: on a slow link that takes longer."""
        wait_s = (self.timeout_s if timeout_s is None else timeout_s) + least / SLOWEST_BYTES_PER_S
        deadline = min(self._in_time() + wait_s, self._ends_at)
        latest = min(deadline + self._pending_bytes / SLOWEST_BYTES_PER_S, self._ends_at)
        filled = 0
        while filled < least:
            if not self._has_unread and not self._is_readable(deadline):
                deadline = self._put_off(deadline, wait_s, latest)
                continue
            count = self._fill(view[filled:])
            if count:
                filled += count
            elif count == 0:
                raise lost(self._failure or "the peer closed the connection")
        return filled

    def wait_sent(self) -> None:
        """Wait until the kernel has all that was sent: a peer that asks on without reading is not answered further."""
        with self._changed:
            wait_s = self.timeout_s + self._pending_bytes / SLOWEST_BYTES_PER_S
            if not self._changed.wait_for(lambda: not self._pending or self._failure, wait_s):
                raise lost("the peer reads too slowly")
            if self._failure:
                raise lost(self._failure)

    def close(self, *, wait_s: float | None = None) -> None:
        """Sends what is pending, as far as the peer takes it in time, then closes."""
        with self._changed:
            if self._closing:
                return
            done = self._changed.wait_for(
                lambda: not self._pending or self._failure, self.timeout_s if wait_s is None else wait_s
            )
            self._closing = True
            self._changed.notify_all()
        if not done:
            self.abort()  # the writer may be waiting for the peer
        if self._writer is not None:
            self._writer.join()
        self._sock.close()

    def linger(self, wait_s: float) -> None:
        """Ends sending and reads on until the peer closes too, so that it gets our last message and not a reset."""
        deadline = time.monotonic() + wait_s
        try:
            with self._changed:
                self._changed.wait_for(lambda: not self._pending or self._failure, wait_s)
            self._sock.shutdown(socket.SHUT_WR)
            left_bytes, scrap = MAX_LINGER_BYTES, bytearray(1 << 16)
            while left_bytes > 0:
                if not self._is_readable(deadline):
                    return
                count = self._sock.recv_into(scrap)
                if not count:
                    return
                left_bytes -= count
        except OSError:
            return  # the peer is gone or will not listen: there is nobody to be polite to

    def is_readable(self) -> bool:
        """Return whether bytes, or the peer's end, have come and nobody has taken them. A closed stream is at its
        end: its descriptor may be another's by now."""
        return self._closing or bool(self._readable.poll(0))

    def stop_reading(self) -> None:
        """A `receive` that waits for the peer ends as if the peer had closed; what is sent still arrives."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RD)

    def abort(self) -> None:
        """Whoever waits on this connection stops waiting."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)

    def _hand_over(self, sealed: list[Buffer]) -> None:
        """To the kernel what it takes at once, the rest to the writer."""
        with self._guard:
            if self._failure or self._closing:
                raise lost(self._failure or "the connection is closed")
            size, before_bytes = sum(map(len, sealed)), self._pending_bytes
            due = 0.0 if self._link is None else self._due(size, self._link)
            wire = sealed
            if not self._pending and self._link is None:
                wire = self._send_now(sealed, size)
            for part in filter(len, wire):
                # The caller may reuse its buffers as soon as `send` returns.
                self._pending.append((due, memoryview(part if self._owns_sealed else bytes(part))))
                self._pending_bytes += len(part)
            if self._pending:
                self._wake_writer()
            wait_s = min(self.timeout_s, self._ends_at - self._in_time())
            if self._pending and not self._changed.wait_for(lambda: self._has_room(before_bytes), wait_s):
                raise lost("the peer reads too slowly")

    def _seal(self, parts: list[Buffer]) -> Iterable[list[Buffer]]:
        """Make what goes on the wire for these bytes, in slices that are handed over as they come."""
        return (parts,)

    def _fill(self, view: memoryview) -> int | None:
        """Puts received bytes into the view: how many, None if none are there yet, 0 at the end. Asked when the socket
        is readable or `_has_unread`."""
        try:
            return self._sock.recv_into(view)
        except BlockingIOError:
            return None
        except OSError as error:
            raise lost(_reason(error)) from None

    def _put_off(self, deadline: float, wait_s: float, latest: float) -> float:
        """A later deadline, if the peer did not have all before this one. The writer ends with who takes nothing."""
        with self._changed:
            had_all_at = time.monotonic() if self._pending else self._taken_at
        later = min(had_all_at + wait_s, latest)
        if later <= deadline:
            raise lost("the peer did not answer in time")
        return later

    def _is_readable(self, deadline: float) -> bool:
        """Now or before the deadline; after it never, however fast bytes come."""
        left_s = deadline - time.monotonic()
        return left_s > 0 and bool(self._readable.poll(1000 * left_s))

    def _has_room(self, before_bytes: int) -> bool:
        """Return whether more may wait. Short memory stops growth only: a slow peer that reads is not to blame."""
        if self._failure is not None:
            return True
        if self._pending_bytes > self.max_pending_bytes:
            return False
        return self._pending_bytes <= max(before_bytes, UNSHARED_PENDING_BYTES) or not self._is_memory_short()

    def _in_time(self) -> float:
        """The time now, which is not beyond the end of all."""
        now = time.monotonic()
        if now >= self._ends_at:
            raise lost("the peer took too long in all")
        return now

    def _due(self, size_bytes: int, link: Link) -> float:
        self._link_free_at = max(time.monotonic(), self._link_free_at) + 8 * size_bytes / link.bits_per_s
        return self._link_free_at + link.round_trip_s / 2

    def _send_now(self, parts: list[Buffer], size: int) -> list[Buffer]:
        """Send what the kernel takes; return the rest."""
        while parts:
            try:
                sent = self._sock.sendmsg(parts[:_BUFFERS_AT_ONCE])
            except BlockingIOError:
                break
            except OSError as error:
                raise lost(_reason(error)) from None
            size -= sent
            if not size:
                return []
            while sent >= len(parts[0]):
                sent -= len(parts[0])
                parts = parts[1:]
            parts = [memoryview(parts[0])[sent:], *parts[1:]]
        return parts

    def _wake_writer(self) -> None:
        if self._writer is None or not self._writer.is_alive:
            try:
                self._writer = Worker(self._write_pending)
            except (RuntimeError, MemoryError):
                raise lost("this machine has no memory left for another thread") from None
        self._changed.notify_all()

    def _write_pending(self) -> None:
        poll = select.poll()
        poll.register(self._sock, select.POLLOUT)
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._pending or self._closing)
                if self._closing:
                    return
                due, part = self._pending[0]
                early_s = due - time.monotonic()
                if early_s > 0:
                    self._changed.wait_for(lambda: self._closing, early_s)
                    continue
            try:
                sent = self._sock.send(part)
            except BlockingIOError:
                if poll.poll(1000 * self.timeout_s):
                    continue
                self._fail("the peer reads too slowly")
                return
            except OSError as error:
                self._fail(_reason(error))
                return
            with self._changed:
                self._pending_bytes -= sent
                self._taken_at = time.monotonic()
                if sent == len(part):
                    self._pending.popleft()
                else:
                    self._pending[0] = (due, part[sent:])
                self._changed.notify_all()

    def _fail(self, why: str) -> None:
        with self._changed:
            self._failure = why
            self._pending.clear()
            self._pending_bytes = 0
            self._changed.notify_all()


def lost(why: str) -> ConnectionLostError:
    return ConnectionLostError(why, where="connection", remedy="Connect again; unused bundles stay valid.")


def _reason(error: OSError) -> str:
    """How a lost peer shows itself depends on what was under way; it is the same thing to the user."""
    if isinstance(error, BrokenPipeError | ConnectionResetError):
        return "the peer closed the connection"
    return error.strerror or str(error)
