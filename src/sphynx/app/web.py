"""The page and its server, on the loopback address only.

Below the token (access.py):

    GET   (empty)  limits  *.css  *.js   package data, beside this file
    GET   about                          JSON: the network, the server, the samples
    GET   samples/NAME                   a picture
    GET   events                         server-sent events: the desk's bulletin
    GET   estimates?backend=             JSON, by link
    POST  ask?backend=                   a picture file -> JSON, when it is answered
    POST  ask?backend=&compare=1         the same, and beside it the answers in the clear, where the weights are here
    GET   record?answer=N                a page about the session's answer of this number, to print or to keep
    POST  ask?backend=&clear=1           the same in the clear, where the weights are here
    POST  prefer?backend=                which backend bundles are kept ready for

Each but the first line takes model=N, the number of one of several networks; the first unless it does.
A body is at most MOST_UPLOADED_BYTES long, says so beforehand, and no more of it is read.
"""

from __future__ import annotations

import contextlib
import io
import json
import queue
import select
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qsl

from sphynx.app.access import HOST, Access
from sphynx.app.desk import Desk
from sphynx.app.network import Network, chosen_backend
from sphynx.app.strangers import PageServer
from sphynx.errors import InputError, SphynxError
from sphynx.service.answer_record import STYLE, STYLE_HASH

MOST_UPLOADED_BYTES = 32 << 20
UNSURE_BELOW = 0.5
MOST_STREAMS = 8  # pages open at once
DRAINED_BYTES = 1 << 20  # of a body that is refused, so that the refusal can be read
REQUEST_SECONDS = 20.0
HEARTBEAT_SECONDS = 5.0  # a page whose connection was cut is noticed by then
LOOK_SECONDS = 0.5  # and by then one that was closed
KINDS = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
FILES = ("icon.svg", "page.css", "page.js", "answer.js", "comparison.js", "drawing.js", "film.js", "history.js")
PAGE = {"": "page.html", "limits": "limits.html", **{name: name for name in FILES}}
EXPIRED = "expired.html"  # for a browser that shows another token, or none
INTERNAL = "something in the program failed that should not have"
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'",
    "Permissions-Policy": "camera=(self), microphone=(), geolocation=()",
    "Referrer-Policy": "no-referrer",  # the address holds the token
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}

# A record is one file, which brings its style along; so does the page without a token, which may fetch nothing.
ONE_FILE_POLICY = {
    "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{STYLE_HASH}'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
}


class App:
    """Serves until closed, in threads of its own."""

    def __init__(self, desks: Sequence[Desk], port: int = 0, unsure_below: float = UNSURE_BELOW) -> None:
        """A desk for each network that the page offers. Port 0 is any that is free. Answers whose probability is
        below `unsure_below` are called unsure."""
        app = self

        class Handler(_Handler):
            served = app

        try:
            self._http = PageServer((HOST, port), Handler)
        except OSError as error:
            raise InputError(
                f"cannot listen there ({error.strerror})",
                where=f"{HOST}:{port}",
                remedy="Choose a free port: `port=PORT`, or 0 for any.",
            ) from None
        self._unsure_below = unsure_below
        self.networks, self.access = [Network(desk) for desk in desks], Access(int(self._http.server_address[1]))
        self.streams = threading.Semaphore(MOST_STREAMS)
        self.is_closing = threading.Event()
        self._thread = threading.Thread(target=self._http.serve_forever, name="sphynx-page", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return self.access.url

    def close(self) -> None:
        self.is_closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def about(self, options: Mapping[str, str]) -> dict[str, Any]:
        models = [network.name for network in self.networks]
        return {**self.network(options).about(), "models": models, "unsure_below": self._unsure_below}

    def network(self, options: Mapping[str, str]) -> Network:
        """The one that a request names by its number; the first unless it does."""
        number = options.get("model", "0")
        if not (number.isascii() and number.isdecimal() and len(number) < 4 and int(number) < len(self.networks)):
            raise InputError(f"{number!r} is not a valid model number", remedy=f"Give 0 to {len(self.networks) - 1}.")
        return self.networks[int(number)]


class _Handler(BaseHTTPRequestHandler):
    served: App
    server: PageServer
    timeout = REQUEST_SECONDS
    server_version, sys_version = "sphynx", ""

    def do_GET(self) -> None:
        self._handle(self._get)

    def do_POST(self) -> None:
        self._handle(self._post)

    def log_message(self, *_: object) -> None:
        """Addresses hold the token: nothing is logged."""

    def _handle(self, answer: Any) -> None:
        asked, _, query = self.path.partition("?")  # a stranger's may be no address: urlsplit would raise
        path = self.served.access.granted_path(asked, self.headers)  # type: ignore[arg-type]
        with contextlib.suppress(ConnectionError, TimeoutError):  # the page is gone
            if path is None:
                self._refuse_stranger()
                return
            self.server.count_no_more(self.connection)
            try:
                answer(path, dict(parse_qsl(query)))
            except SphynxError as error:
                status = HTTPStatus.BAD_REQUEST if isinstance(error, InputError) else HTTPStatus.BAD_GATEWAY
                self._send_json({"what": str(error), "remedy": error.remedy}, status)
            except (ConnectionError, TimeoutError):
                raise
            except Exception:  # the page gets words, and whoever started the program the traceback
                self._send_json({"what": INTERNAL, "remedy": "See the terminal."}, HTTPStatus.INTERNAL_SERVER_ERROR)
                raise

    def _get(self, path: str, options: Mapping[str, str]) -> None:
        if path in PAGE:
            self._send_page(PAGE[path])
        elif path == "about":
            self._send_json(self.served.about(options))
        elif path == "estimates":
            self._send_json(self.served.network(options).desk.estimates(chosen_backend(options)))
        elif path == "events":
            self._send_events(self.served.network(options).desk)
        elif path == "record":
            page = self.served.network(options).desk.record(options.get("answer", "")).to_html()
            self._send(page.encode(), "text/html; charset=utf-8", policy=ONE_FILE_POLICY)
        elif path.startswith("samples/"):
            content = io.BytesIO()
            self.served.network(options).sample(path.removeprefix("samples/")).save(content, "PNG")
            self._send(content.getvalue(), "image/png")
        else:
            self._refuse(HTTPStatus.NOT_FOUND, "not found")

    def _post(self, path: str, options: Mapping[str, str]) -> None:
        body = self._body()
        if body is None:
            return
        if path == "ask":
            self._send_json(self.served.network(options).answer(body, options, self._is_waited_for))
        elif path == "prefer":
            self.served.network(options).desk.prefer(chosen_backend(options))
            self._send_json({})
        else:
            self._refuse(HTTPStatus.NOT_FOUND, "not found")

    def _body(self) -> bytes | None:
        """None: it was refused."""
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdecimal()) or "Transfer-Encoding" in self.headers:
            self._refuse(HTTPStatus.LENGTH_REQUIRED, "a Content-Length header is required")
            return None
        if len(length) > 12 or int(length) > MOST_UPLOADED_BYTES:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"at most {MOST_UPLOADED_BYTES >> 20} MiB")
            return None
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            self._refuse(HTTPStatus.BAD_REQUEST, "the body is incomplete")
            return None
        return body

    def _send_events(self, desk: Desk) -> None:
        app = self.served
        if not app.streams.acquire(blocking=False):
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, "too many pages are open")
            return
        try:
            with desk.bulletin.subscribed() as news:
                self._start(HTTPStatus.OK, "text/event-stream")
                self.end_headers()
                said_s = time.monotonic()
                while not app.is_closing.is_set() and self._is_waited_for():
                    try:
                        kind, said = news.get(timeout=LOOK_SECONDS)
                        self.wfile.write(f"event: {kind}\ndata: {json.dumps(said)}\n\n".encode())
                    except queue.Empty:
                        if time.monotonic() - said_s < HEARTBEAT_SECONDS:
                            continue
                        self.wfile.write(b": still here\n\n")
                    said_s = time.monotonic()
        finally:
            app.streams.release()

    def _is_waited_for(self) -> bool:
        """Return whether the page still waits: turning to another question, or leaving, closes this connection."""
        readable = select.poll()
        readable.register(self.connection, select.POLLIN)
        with contextlib.suppress(OSError):
            return not readable.poll(0) or self.connection.recv(1, socket.MSG_PEEK) != b""
        return False

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        self._send_json({"what": why, "remedy": "Use the address that `sphynx app` printed."}, status)
        if self.command == "POST":
            self._drain()

    def _refuse_stranger(self) -> None:
        """Refuse in words where a browser would show them: mostly the address of an earlier run."""
        if self.command == "GET" and "text/html" in self.headers.get("Accept", ""):
            page = files("sphynx.app").joinpath("page", EXPIRED).read_text("utf-8")
            page = page.replace("</head>", f"<style>{STYLE}</style>\n</head>")
            self._send(page.encode(), "text/html; charset=utf-8", HTTPStatus.FORBIDDEN, ONE_FILE_POLICY)
        else:
            self._refuse(HTTPStatus.FORBIDDEN, "refused")

    def _drain(self) -> None:
        """A connection that is closed with bytes unread is reset, and the refusal may be lost with it."""
        with contextlib.suppress(OSError):
            self.connection.settimeout(1.0)
            left = DRAINED_BYTES
            while left > 0 and (taken := len(self.connection.recv(min(left, 1 << 16)))):
                left -= taken

    def _send_page(self, name: str) -> None:
        content = files("sphynx.app").joinpath("page", name).read_bytes()
        self._send(content, f"{KINDS[name.rpartition('.')[2]]}; charset=utf-8")

    def _send_json(self, value: Mapping[str, Any], status: HTTPStatus = HTTPStatus.OK) -> None:
        self._send(json.dumps(value).encode(), "application/json", status)

    def _send(
        self, content: bytes, kind: str, status: HTTPStatus = HTTPStatus.OK, policy: Mapping[str, str] | None = None
    ) -> None:
        self._start(status, kind, policy or {})
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _start(self, status: HTTPStatus, kind: str, policy: Mapping[str, str] = {}) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        for name, value in {**HEADERS, **policy}.items():
            self.send_header(name, value)
