"""Sources of a server's connections: a port of this process, or another process that accepts them."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
from collections.abc import Callable
from typing import Protocol

from sphynx.errors import InputError

BACKLOG = 128
READY, CALL, DONE = b"ready", b"call", b"done"  # from a worker: it serves; a connection for calls; one ended
MAX_NOTE_BYTES = 256


class Listener(Protocol):
    @property
    def port(self) -> int: ...

    def fileno(self) -> int: ...

    def accept(self) -> tuple[socket.socket, str]:
        """A connection and the peer's address. BlockingIOError if there is none, OSError if it cannot be had."""
        ...

    def ended(self) -> None:
        """One that was accepted is over; called by the thread that led it, or for one that no thread could lead."""
        ...

    def close(self) -> None: ...


def why_not_bound(error: OSError) -> str:
    """The system's words alone: `socket.create_server` puts the address behind them, in Python's."""
    return (error.strerror or str(error)).partition(" (while ")[0]


class PortListener:
    def __init__(self, host: str, port: int) -> None:
        try:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            self._socket = socket.create_server((host, port), family=family, backlog=BACKLOG)
        except OSError as error:
            raise InputError(
                f"cannot listen there ({why_not_bound(error)})",
                where=f"{host}:{port}",
                remedy='Choose a free port and an address of this machine: `listen="HOST:PORT"`.',
            ) from None
        self._socket.setblocking(False)

    @property
    def port(self) -> int:
        return int(self._socket.getsockname()[1])

    def fileno(self) -> int:
        return self._socket.fileno()

    def accept(self) -> tuple[socket.socket, str]:
        sock, address = self._socket.accept()
        return sock, str(address[0])

    def ended(self) -> None:
        """Nobody else counts them."""

    def close(self) -> None:
        self._socket.close()


class HandedOver:
    """A worker's: the owner accepts, and sends sockets with their addresses over `control`."""

    def __init__(self, control: socket.socket, lost: Callable[[], None], end_thread: Callable[[], None]) -> None:
        """`lost` is called when the owner is gone, `end_thread` by a thread that led a connection and ends."""
        control.setblocking(False)
        self._control, self._lost, self._end_thread = control, lost, end_thread

    @property
    def port(self) -> int:
        """The owner's; no worker needs to know it."""
        return 0

    def fileno(self) -> int:
        return self._control.fileno()

    def accept(self) -> tuple[socket.socket, str]:
        note, descriptors, _flags, _address = socket.recv_fds(self._control, MAX_NOTE_BYTES, 1)
        if not note:
            self._lost()
            raise ConnectionResetError("the owner is gone")
        if not descriptors:  # this process has none left for it: the kernel has closed the connection
            self.ended()
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return socket.socket(fileno=descriptors[0]), note.decode()

    def ended(self) -> None:
        self._end_thread()
        with contextlib.suppress(OSError):
            self._control.send(DONE)

    def close(self) -> None:
        """The control socket stays: running conversations still ask the owner."""
