"""A TCP proxy between a client and the server that does to one TLS record what a network can do to it.

Records are numbered per connection and direction. The first connection is the offline phase's, the second the online
phase's; later ones pass untouched. It cannot read what is inside, as an attacker on the network cannot.
"""

from __future__ import annotations

import contextlib
import ctypes
import socket
import struct
import threading
import time
from dataclasses import dataclass

from tests.chaos.strike import PHASES, Board

DELAY_S = 0.03  # everything is in time
SILENCE_S = 1.5  # longer than all timeouts that are set with it
DIRECTIONS = ("up", "down")
NETWORK_FAULTS = ("truncate", "reset", "corrupt", "corrupt header", "duplicate", "drop", "swap", "delay", "silence")
HARMLESS = ("delay",)
HEADER_BYTES = 5
_SOCKADDR_BYTES = 16


@dataclass(frozen=True)
class RecordBlow:
    fault: str
    phase: str
    direction: str
    record: int
    seed: int = 0


def slot_of(phase: str, direction: str) -> int:
    """The board's slot for the number of records."""
    return 2 * PHASES.index(phase) + DIRECTIONS.index(direction)


def relay(listener: socket.socket, port: int, board: Board, blow: RecordBlow | None) -> None:
    """Relay until the process ends."""
    for phase in ("offline", "online", *["later"] * 100):
        near, _ = listener.accept()
        try:
            far = socket.create_connection(("127.0.0.1", port))
        except OSError:  # the server is gone
            near.close()
            continue
        for direction, source, sink in (("up", near, far), ("down", far, near)):
            sink.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            pump = _Pump(source, sink, phase, direction, board, blow)
            threading.Thread(target=pump.run, daemon=True).start()


class _Pump:
    def __init__(
        self,
        source: socket.socket,
        sink: socket.socket,
        phase: str,
        direction: str,
        board: Board,
        blow: RecordBlow | None,
    ) -> None:
        self._source, self._sink, self._board = source, sink, board
        self._slot = slot_of(phase, direction) if phase in PHASES else None
        self._blow = blow if blow is not None and (blow.phase, blow.direction) == (phase, direction) else None
        self._held = b""

    def run(self) -> None:
        with contextlib.suppress(OSError):
            while record := self._next():
                number = self._board.add(self._slot) if self._slot is not None else -1
                if self._blow is not None and number == self._blow.record:
                    self._board.strike()
                    self._hit(record)
                else:
                    self._sink.sendall(record + self._held)
                    self._held = b""
        for sock in (self._sink, self._source):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_WR if sock is self._sink else socket.SHUT_RD)

    def _next(self) -> bytes:
        header = self._exactly(HEADER_BYTES)
        if len(header) < HEADER_BYTES:
            return header
        (size,) = struct.unpack_from(">H", header, 3)
        return header + self._exactly(size)

    def _exactly(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            part = self._source.recv(size - len(found))
            if not part:
                break
            found += part
        return found

    def _hit(self, record: bytes) -> None:
        assert self._blow is not None
        fault = self._blow.fault
        if fault == "truncate":
            self._sink.sendall(record[: len(record) // 2])
            self._cut()
        elif fault == "reset":
            for sock in (self._sink, self._source):
                _reset(sock)
        elif fault.startswith("corrupt"):
            at = self._blow.seed % HEADER_BYTES if fault == "corrupt header" else HEADER_BYTES
            at = at if fault == "corrupt header" else at + self._blow.seed % max(1, len(record) - HEADER_BYTES)
            changed = bytearray(record)
            changed[at] ^= 1 << self._blow.seed % 8
            self._sink.sendall(changed)
        elif fault == "duplicate":
            self._sink.sendall(record * 2)
        elif fault == "swap":
            self._held = record  # goes out behind the next one
        elif fault != "drop":
            time.sleep(DELAY_S if fault == "delay" else SILENCE_S)
            self._sink.sendall(record)

    def _cut(self) -> None:
        for sock in (self._sink, self._source):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()


def _reset(sock: socket.socket) -> None:
    """Connecting to AF_UNSPEC, which is 0, aborts a TCP connection at once (connect(2)); `close` would wait until the
    thread that reads the other direction lets go of the socket."""
    ctypes.CDLL(None).connect(sock.fileno(), bytes(_SOCKADDR_BYTES), _SOCKADDR_BYTES)
