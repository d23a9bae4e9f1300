"""The log of `sphynx serve` in words where it is a terminal, and JSON elsewhere."""

from __future__ import annotations

import io
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

from sphynx.cli.event_lines import EventLines, describe_line
from sphynx.service.events import EventLog
from tests.app.conftest import authority as authority  # fixtures
from tests.app.conftest import compiled_folder as compiled_folder


def told(event: str, **fields: str | int | float) -> str:
    stream = io.StringIO()
    EventLog(EventLines(stream)).write(event, **fields)  # type: ignore[arg-type]
    return stream.getvalue().split("  ", 1)[1]


def test_events_are_told_in_words() -> None:
    assert told("serving", host="127.0.0.1", port=7443, name="digits", bundles=2) == (
        "Serving digits on 127.0.0.1:7443; Ctrl-C stops (2 bundles ready)\n"
    )
    work: dict[str, str | int | float]
    work = {"client": "alice", "backend": "gmw", "sent_bytes": 526_600, "received_bytes": 220_600, "rounds": 13}
    assert told("inferred", seconds=0.0204, **work) == (
        "alice: answered in 20.4 ms (gmw): 527 kB sent, 221 kB received, 13 rounds\n"
    )
    assert told("refused", client="eve", why="no such bundle") == "eve: refused: no such bundle\n"
    assert told("worker_lost", worker=3, exit_code=9) == "worker lost: worker 3, exit_code 9\n"


def test_what_is_no_event_passes() -> None:
    for line in ("warning: disk is slow", "[1]", '{"event": 3}', "{", '{"event": "serving", "time": 1.0}'):
        assert describe_line(line) == line


def test_a_terminal_reads_words_and_a_file_json(compiled_folder: Path, authority: Path, tmp_path: Path) -> None:
    keys = str(authority / "server")
    command = [sys.executable, "-m", "sphynx.cli.main", "serve", str(compiled_folder), "--keys", keys]
    command += ["--listen", "127.0.0.1:0", "--state", str(tmp_path / "state")]
    screen, terminal = pty.openpty()
    with subprocess.Popen(command, stderr=terminal) as server:
        os.close(terminal)
        seen, deadline_s = b"", time.monotonic() + 60
        while b"Ctrl-C stops" not in seen and time.monotonic() < deadline_s:
            if select.select([screen], [], [], 1)[0]:
                seen += os.read(screen, 4096)
        server.send_signal(signal.SIGINT)
    assert b"Serving small on 127.0.0.1:" in seen and b"{" not in seen
    os.close(screen)
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        line = server.stderr.readline()
        server.send_signal(signal.SIGINT)  # before the line is judged: a server that is not stopped is waited for
    assert json.loads(line)["event"] == "serving"
