"""Connections that have not shown the token yet: so few of them that they cannot use up threads or descriptors.

Every user of this machine can connect. Each connection has a thread from the moment it is accepted; one above
MOST_STRANGERS costs the one that has waited longest its place. Whoever has the token shows it in a first request,
which takes a browser milliseconds, and is not counted from then on.
"""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
from http.server import ThreadingHTTPServer
from typing import Any

MOST_STRANGERS = 32


class PageServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # if it is full, a newcomer waits for seconds

    def __init__(self, *arguments: Any) -> None:
        self._lock = threading.Lock()
        self._strangers: list[socket.socket] = []  # in the order in which they came
        super().__init__(*arguments)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._strangers.append(request)
            surplus = self._strangers[:-MOST_STRANGERS]
            del self._strangers[:-MOST_STRANGERS]
        for connection in surplus:
            with contextlib.suppress(OSError):  # it left by itself
                connection.shutdown(socket.SHUT_RDWR)  # its thread reads the end, and ends
        super().process_request(request, client_address)

    def count_no_more(self, connection: socket.socket) -> None:
        """It has shown the token, or is over."""
        with self._lock, contextlib.suppress(ValueError):
            self._strangers.remove(connection)

    def shutdown_request(self, request: Any) -> None:
        self.count_no_more(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing where a peer has gone: that is not an error."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)
