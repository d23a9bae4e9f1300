"""/metrics in OpenMetrics' text format and /healthz, over HTTP, where the operator says.

Beyond this machine's loopback address /metrics is told to those only who send a token, or prove by TLS that they are
clients of the server's authority, or both. Without TLS the token and the metrics can be read on the way.
"""

from __future__ import annotations

import hmac
import socket
import sys
import threading
from collections.abc import Callable
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from sphynx.errors import InputError, SphynxError
from sphynx.service.certificate import Role, why_not
from sphynx.service.fresh_keys import FreshKeys
from sphynx.threads import Worker

OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
REQUEST_S = 5.0  # for a request to arrive
LEAST_TOKEN = 16


class _HttpServer(ThreadingHTTPServer):
    keys: FreshKeys | None = None  # then it speaks TLS

    def finish_request(self, request: Any, client_address: Any) -> None:
        if self.keys is None:
            return super().finish_request(request, client_address)
        request.settimeout(REQUEST_S)
        with self.keys.context().wrap_socket(request, server_side=True) as inside:
            if why_not(inside.getpeercert(binary_form=True) or b"", Role.CLIENT):
                return None
            return super().finish_request(inside, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever asks may leave before the answer: stderr is the log's, one JSON object a line."""
        if not isinstance(sys.exc_info()[1], OSError | SphynxError):
            super().handle_error(request, client_address)

    def process_request(self, request: Any, client_address: Any) -> None:
        try:
            Worker(partial(self.process_request_thread, request, client_address))
        except (RuntimeError, MemoryError):
            self.shutdown_request(request)


class _HttpServer6(_HttpServer):
    address_family = socket.AF_INET6


class Monitor:
    """Serves until closed, in its own threads."""

    def __init__(
        self,
        address: tuple[str, int],
        render: Callable[[], str],
        is_healthy: Callable[[], bool],
        *,
        token: str = "",
        keys: FreshKeys | None = None,
    ) -> None:
        """With a `token`, metrics are told to those only who send it. With `keys` it speaks TLS, to clients of the same
        authority."""
        authorised = f"Bearer {token}".encode()

        class Handler(BaseHTTPRequestHandler):
            timeout = REQUEST_S

            def do_GET(self) -> None:
                if self.path == "/metrics":
                    given = self.headers.get("Authorization", "").encode()
                    if token and not hmac.compare_digest(given, authorised):
                        self._answer(401, "the token is missing or wrong\n", "text/plain")
                        return
                    self._answer(*self._metrics())
                elif self.path == "/healthz":
                    healthy = is_healthy()
                    self._answer(200 if healthy else 503, "ok\n" if healthy else "stopping\n", "text/plain")
                else:
                    self._answer(404, "not found\n", "text/plain")

            def _metrics(self) -> tuple[int, str, str]:
                try:
                    return 200, render(), OPENMETRICS
                except SphynxError as error:  # a ledger that cannot be read
                    return 500, f"{error}\n", "text/plain"

            def log_message(self, *_: object) -> None:
                """Scrapes every few seconds are not events."""

            def _answer(self, status: int, text: str, kind: str) -> None:
                body = text.encode()
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                if status == 401:
                    self.send_header("WWW-Authenticate", "Bearer")
                self.end_headers()
                self.wfile.write(body)

        try:
            self._http = (_HttpServer6 if ":" in address[0] else _HttpServer)(address, Handler)
        except OSError as error:
            raise InputError(
                f"cannot listen there ({error.strerror})",
                where=":".join(map(str, address)),
                remedy="Choose a free port: `metrics=HOST:PORT`.",
            ) from None
        self._http.keys = keys
        self._thread = threading.Thread(target=self._http.serve_forever, name="sphynx-monitor", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._http.server_address[1])

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


def read_token(path: Path) -> str:
    """Read the token that scrapers must send: the file's one line."""
    try:
        token = path.read_text().strip()
    except (OSError, ValueError) as error:
        raise InputError(
            f"the token cannot be read ({error})", where=str(path), remedy="Make one: openssl rand -hex 32."
        ) from None
    if len(token) < LEAST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise InputError(
            f"it is not a token: one line of {LEAST_TOKEN} or more letters and digits",
            where=str(path),
            remedy="Make one: openssl rand -hex 32.",
        )
    return token
