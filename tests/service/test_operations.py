"""Operations that keep a server running well: places, logs without secrets, metrics and health."""

from __future__ import annotations

import io
import json
import socket
import struct
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from sphynx import threads
from sphynx.errors import DiskError, InputError, RefusedError
from sphynx.service.admission import Places
from sphynx.service.events import LINES_PER_S, MAX_TEXT, EventLog, FewLines, place_of
from sphynx.service.metrics import METRICS, Metrics
from sphynx.service.monitor import Monitor
from tests.service.test_limits import AwaitedLog


def test_places_are_limited_in_all_and_for_each_holder() -> None:
    places = Places(3, 2)
    assert [places.try_take(holder) for holder in ("a", "a", "a", "b", "c")] == [True, True, False, True, False]
    with pytest.raises(RefusedError, match="busy"), places.taken_by("c", wait_s=0):
        pass
    places.give_back("a")
    with places.taken_by("c", wait_s=0):
        assert places.taken == 3
    assert places.taken == 2


def test_who_waits_for_a_place_gets_it() -> None:
    places, entered = Places(1, 1), threading.Event()

    def wait() -> None:
        with places.taken_by("b", wait_s=30):
            entered.set()

    assert places.try_take("a")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(wait)
        places.give_back("a")
        waiting.result()
    assert entered.is_set() and places.taken == 0


def test_only_scalars_are_logged() -> None:
    stream = io.StringIO()
    log = EventLog(stream)
    log.write("inferred", client='a"\n', seconds=0.5, text="x" * 1000)
    (line,) = stream.getvalue().splitlines()
    assert json.loads(line) | {"time": 0} == {
        "time": 0,
        "event": "inferred",
        "client": 'a"\n',
        "seconds": 0.5,
        "text": "x" * MAX_TEXT,
    }
    for secret in (np.arange(3), np.int64(3), b"share", [1], None):
        with pytest.raises(TypeError, match="only scalars"):
            log.write("inferred", value=secret)  # type: ignore[arg-type]
    try:
        raise ValueError("a secret")
    except ValueError as error:
        assert "test_operations.py" in place_of(error) and "secret" not in place_of(error)


def test_what_strangers_can_bring_about_is_written_a_few_times_and_then_counted() -> None:
    """A flood of bad handshakes wrote thousands of lines a second."""
    stream = io.StringIO()
    few = FewLines(EventLog(stream), "handshake_failed", second_s=3600)
    for number in range(LINES_PER_S + 15):
        few.write(why=str(number))
    few.tell_suppressed()
    few.tell_suppressed()
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["why"] for line in lines] == [*map(str, range(LINES_PER_S)), "15 more in this second"]
    assert lines[-1]["event"] == "handshake_failed" and lines[-1]["suppressed"] == 15


def test_the_count_is_told_by_itself() -> None:
    log = AwaitedLog('"suppressed"')
    few = FewLines(EventLog(log), "handshake_failed", second_s=0.2)
    deadline = time.monotonic() + 30
    while not few._suppressed and time.monotonic() < deadline:
        few.write()
    assert log.written.wait(30)


def test_without_a_thread_the_next_line_tells_the_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "start_new_thread", lambda *_: 0)  # it dies before it begins
    stream = io.StringIO()
    few = FewLines(EventLog(stream), "handshake_failed", second_s=0.05)
    deadline = time.monotonic() + 30
    while "more in this second" not in stream.getvalue() and time.monotonic() < deadline:
        few.write()
    assert "more in this second" in stream.getvalue()


def test_a_log_that_is_gone_is_no_failure() -> None:
    stream = io.StringIO()
    stream.close()
    EventLog(stream).write("stopped")


def test_who_leaves_before_the_answer_leaves_no_traceback(capfd: pytest.CaptureFixture[str]) -> None:
    """stderr is the server's log, one JSON object a line."""
    left, is_over = threading.Event(), threading.Event()

    def render() -> str:
        assert left.wait(30)
        return "#" * (1 << 22)  # more than the kernel takes at once

    monitor = Monitor(("127.0.0.1", 0), render, lambda: True)
    shut_down = monitor._http.shutdown_request

    def shut_down_and_tell(request: Any) -> None:
        shut_down(request)
        is_over.set()

    monitor._http.shutdown_request = shut_down_and_tell
    try:
        with socket.create_connection(("127.0.0.1", monitor.port)) as asking:
            asking.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            asking.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # leaves by a reset
        left.set()
        assert is_over.wait(30)
    finally:
        monitor.close()
    assert capfd.readouterr().err == ""


def test_metrics_that_cannot_be_counted_say_why(capfd: pytest.CaptureFixture[str]) -> None:
    def render() -> str:
        raise DiskError("it is damaged", where="ledger", remedy="Move it away.")

    monitor = Monitor(("127.0.0.1", 0), render, lambda: True)
    try:
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(f"http://127.0.0.1:{monitor.port}/metrics", timeout=10)
        assert caught.value.code == 500 and caught.value.read() == b"ledger: it is damaged\n"
    finally:
        monitor.close()
    assert capfd.readouterr().err == ""


def test_metrics_and_health_over_http() -> None:
    metrics, healthy = Metrics(), [True]
    metrics.add("inferences_total", backend="gc", result="done")
    metrics.add("inferences_total", 2, backend="gc", result="done")
    monitor = Monitor(("127.0.0.1", 0), lambda: metrics.render({"open_connections": 4}), lambda: healthy[0])
    try:
        with pytest.raises(InputError, match="cannot listen there"):
            Monitor(("127.0.0.1", monitor.port), str, lambda: True)
        url = f"http://127.0.0.1:{monitor.port}"
        text = urllib.request.urlopen(f"{url}/metrics", timeout=10).read().decode()
        assert 'sphynx_inferences_total{backend="gc",result="done"} 3\n' in text
        assert "# TYPE sphynx_open_connections gauge\nsphynx_open_connections 4\n" in text
        assert text.count("# HELP") == len(METRICS)
        assert urllib.request.urlopen(f"{url}/healthz", timeout=10).read() == b"ok\n"
        healthy[0] = False
        for path, status in (("healthz", 503), ("other", 404)):
            with pytest.raises(urllib.error.HTTPError) as caught:
                urllib.request.urlopen(f"{url}/{path}", timeout=10)
            assert caught.value.code == status
    finally:
        monitor.close()
