"""Requests are refused without the token, from another site, under another name, with more than a picture."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from urllib.parse import urlsplit

import pytest

from sphynx.app import web
from sphynx.app.network import Network
from sphynx.app.strangers import MOST_STRANGERS
from sphynx.app.web import DRAINED_BYTES, HEADERS, MOST_UPLOADED_BYTES, PAGE
from tests.app.conftest import Scene

GIGABYTE = 1 << 30


def status_of(scene: Scene, path: str, headers: dict[str, str] | None = None, method: str = "GET") -> int:
    return raw_request(scene, path, headers, method)[0]


def raw_request(
    scene: Scene, path: str, headers: dict[str, str] | None = None, method: str = "GET"
) -> tuple[int, bytes]:
    """Ask for a path from the root."""
    address = urlsplit(scene.app.url)
    connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=60)
    connection.request(method, path, headers=headers or {})
    reply = connection.getresponse()
    content = reply.read()
    connection.close()
    return reply.status, content


def test_it_listens_on_loopback_only(scene: Scene) -> None:
    assert scene.app._http.socket.getsockname()[0] == urlsplit(scene.app.url).hostname == "127.0.0.1"


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_without_the_token_nothing_is_granted(scene: Scene, method: str) -> None:
    token = scene.app.access.token
    assert len(token) >= 43
    guesses = ("/", "/about", "/ask", f"/{token[:-1]}/about", f"/{token}x/about", f"/?{token}")
    assert [status_of(scene, path, method=method) for path in guesses] == [403] * len(guesses)
    assert status_of(scene, f"/{token}/about") == 200


def test_a_browser_with_an_old_address_gets_a_page_of_words(scene: Scene) -> None:
    wanted = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    status, content = raw_request(scene, "/an-older-token/", wanted)
    assert status == 403 and b"<h1>" in content and b"sphynx app" in content and not content.startswith(b"{")
    status, content = raw_request(scene, "/an-older-token/about")
    assert status == 403 and json.loads(content)["remedy"]


def test_what_fails_inside_is_told_in_words(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Network, "about", lambda _: {"": 1}["none"])
    status, content = scene.request("GET", "about")
    assert status == 500 and "KeyError" not in content.decode() and json.loads(content)["remedy"]


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_other_sites_and_forged_hosts_are_refused(scene: Scene, method: str) -> None:
    port, about = urlsplit(scene.app.url).port, f"/{scene.app.access.token}/about"
    refused = (
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": f"http://localhost:{port}"},  # of this server, but not of the page that asks
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Host": "evil.example"},
        {"Host": f"evil.example:{port}"},
        {"Host": "127.0.0.1"},
        {"Host": ""},
    )
    assert [status_of(scene, about, headers, method) for headers in refused] == [403] * len(refused)
    granted = (
        {"Origin": f"http://127.0.0.1:{port}", "Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "none"},
        {"Host": f"localhost:{port}", "Origin": f"http://localhost:{port}"},
    )
    assert [status_of(scene, about, headers) for headers in granted] == [200] * len(granted)


def test_a_link_opens_the_page_and_nothing_else(scene: Scene) -> None:
    """As from the file that `sphynx app --open` shows to the browser: for this server that is another site."""
    page, followed = f"/{scene.app.access.token}/", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert status_of(scene, page, {**followed, "Sec-Fetch-Dest": "document"}) == 200
    assert status_of(scene, page, {**followed, "Sec-Fetch-Dest": "iframe"}) == 403
    assert status_of(scene, page, {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "document"}) == 403
    assert status_of(scene, page + "about", {**followed, "Sec-Fetch-Dest": "document"}) == 403


@pytest.mark.parametrize("target", ["http://[", "//[", "/[", "http://[::1/", "*", "x:y", "/%", "http://\xff]["])
def test_addresses_that_are_none_are_refused_without_a_word(
    scene: Scene, target: str, capfd: pytest.CaptureFixture[str]
) -> None:
    address = urlsplit(scene.app.url)
    for method in ("GET", "POST"):
        with socket.create_connection((str(address.hostname), address.port), timeout=60) as sock:
            sock.sendall(f"{method} {target} HTTP/1.1\r\nHost: {address.netloc}\r\n\r\n".encode("latin-1"))
            sock.shutdown(socket.SHUT_WR)
            assert b" 403 " in sock.makefile("rb").readline()
    assert capfd.readouterr() == ("", "")


def test_strangers_that_say_nothing_lose_their_places(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest first; the page is served meanwhile."""
    monkeypatch.setattr(web._Handler, "timeout", None)  # they would be patient
    address, before = urlsplit(scene.app.url), threading.active_count()
    idle = [socket.create_connection((str(address.hostname), address.port), timeout=60) for _ in range(200)]
    try:
        assert status_of(scene, f"/{scene.app.access.token}/about") == 200
        lost, kept = idle[: 1 - MOST_STRANGERS], idle[1 - MOST_STRANGERS :]
        assert [sock.recv(1) for sock in lost] == [b""] * len(lost)
        for sock in kept:
            sock.setblocking(False)
            with pytest.raises(BlockingIOError):
                sock.recv(1)
        deadline_s = time.monotonic() + 60
        while threading.active_count() > before + MOST_STRANGERS:  # the threads of the others end
            assert time.monotonic() < deadline_s
            time.sleep(0.01)
    finally:
        for sock in idle:
            sock.close()


def upload(scene: Scene, head: str, body: bytes) -> bytes:
    """Raw bytes, and the first line of the reply."""
    address = urlsplit(scene.app.url)
    with socket.create_connection((str(address.hostname), address.port), timeout=60) as sock:
        path = f"{address.path}ask?backend=gmw"
        sock.sendall(f"POST {path} HTTP/1.1\r\nHost: {address.netloc}\r\n{head}\r\n\r\n".encode() + body)
        return sock.makefile("rb").readline()


def test_a_gigabyte_is_refused_before_it_is_read(scene: Scene) -> None:
    for length in (MOST_UPLOADED_BYTES + 1, GIGABYTE, 10**30):
        assert b" 413 " in upload(scene, f"Content-Length: {length}", bytes(1000))


def test_a_gigabyte_that_follows_is_not_read(scene: Scene) -> None:
    """It is sent as far as the server takes it: what it drains, and what the sockets hold."""
    address = urlsplit(scene.app.url)
    sent, block = 0, bytes(1 << 20)
    with socket.create_connection((str(address.hostname), address.port), timeout=60) as sock:
        request = f"POST {address.path}ask?backend=gmw HTTP/1.1"
        head = f"{request}\r\nHost: {address.netloc}\r\nContent-Length: {GIGABYTE}\r\n\r\n"
        sock.sendall(head.encode())
        with pytest.raises(ConnectionError):
            while sent < GIGABYTE:
                sock.sendall(block)
                sent += len(block)
    assert sent < 64 * DRAINED_BYTES


def test_a_length_that_is_not_said_or_not_one_is_refused(scene: Scene) -> None:
    for head in (
        "X: y",
        "Transfer-Encoding: chunked",
        "Content-Length: -1",
        "Content-Length: 1e9",
        "Content-Length: ²",
    ):
        assert b" 411 " in upload(scene, head, b"")


def test_the_policy_lets_nothing_in_from_elsewhere(scene: Scene) -> None:
    policy = HEADERS["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy and "http" not in policy
    for path in PAGE:
        status, content = scene.request("GET", path)
        content = content.replace(b"http://www.w3.org/2000/svg", b"")  # the name of a format
        assert status == 200 and b"http:" not in content and b"https:" not in content
        assert b" style=" not in content and b" onclick" not in content
    assert scene.request("GET", "../../etc/passwd")[0] in (403, 404)
    assert scene.request("GET", "samples/..%2f..%2fetc")[0] == 400
