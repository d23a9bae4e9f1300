"""Connections whose peers have not yet proved who they are: how many at once, and which of them gives way.

There is no limit for one address while places are free: behind a load balancer all clients have the same. Where all
places are taken, the address with the most of them (an IPv6 network of 64 bits counts as one) loses

    the one that has waited longest without a complete ClientHello, once that is SILENCE_S: a client sends it at once;
    otherwise the one that has waited longest, once that is PATIENCE_S: a client's answer takes one round trip.

Otherwise nobody is accepted, and newcomers wait in the kernel's queue. To be in a client's way strangers have to come
faster than places are given up, not just sit there.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from sphynx.system import unread_bytes

SILENCE_S = 0.1  # not at once: where all strangers send a ClientHello, a client just connected would be the silent one
PATIENCE_S = 2.0


@dataclass
class _Waiter:
    holder: str  # the address or network that it counts for
    since_s: float
    said_hello: bool = False


class Handshakes:
    def __init__(self, total: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._total, self._clock = total, clock
        self._waiting: dict[socket.socket, _Waiter] = {}  # the longest wait first
        self._lock = threading.Lock()

    def make_room(self) -> bool:
        """Make room for one more; return whether it may `enter`. Somebody may have had to give way for that."""
        with self._lock:
            if len(self._waiting) < self._total:
                return True
            late = self._who_gives_way()
            if late is None:
                return False
            del self._waiting[late]
            with contextlib.suppress(OSError):
                late.shutdown(socket.SHUT_RDWR)  # its thread sees the end and closes it
            return True

    def enter(self, sock: socket.socket, address: str) -> None:
        """After `make_room`, by the one thread that accepts."""
        with self._lock:
            self._waiting[sock] = _Waiter(_network(address), self._clock())

    def count_for(self, sock: socket.socket, address: str) -> None:
        """A proxy said for whom it connects."""
        with self._lock:
            if sock in self._waiting:
                self._waiting[sock].holder = _network(address)

    def heard_hello(self, sock: socket.socket) -> None:
        with self._lock:
            if sock in self._waiting:
                self._waiting[sock].said_hello = True

    def leave(self, sock: socket.socket) -> None:
        with self._lock:
            self._waiting.pop(sock, None)

    def _who_gives_way(self) -> socket.socket | None:
        now_s = self._clock()
        held = Counter(waiter.holder for waiter in self._waiting.values())
        most = max(held.values())
        crowd = [(sock, waiter) for sock, waiter in self._waiting.items() if held[waiter.holder] == most]
        for sock, waiter in crowd:
            if now_s - waiter.since_s < SILENCE_S:
                break  # so are all that follow
            if not waiter.said_hello and not unread_bytes(sock):
                return sock
        sock, waiter = crowd[0]
        return sock if now_s - waiter.since_s >= PATIENCE_S else None


def _network(address: str) -> str:
    """The network to count an address under: whoever has one IPv6 address has 2^64 of them."""
    if ":" not in address:
        return address
    found = ipaddress.IPv6Address(address.partition("%")[0])
    return str(found.ipv4_mapped or ipaddress.IPv6Network((found, 64), strict=False))
