"""The real server and the real client as processes, over TLS sockets, with their logs to read."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.warm_process import Command, Warm

ROOT = Path(__file__).parents[2]
WAIT_S = 60.0  # for something that happens at once on an idle machine


def environment(audit: Path) -> dict[str, str]:
    paths = (ROOT / "src", ROOT, Path(__file__).parent / "in_workers")
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), "SPHYNX_TEST_AUDIT": str(audit)}


def command(fault: str, *arguments: str | Path) -> list[str]:
    return [sys.executable, "-P", "-m", "tests.service.fault_process", fault, *map(str, arguments)]


@dataclass
class ServerProcess:
    """`sphynx serve` with small timeouts; its log lines come one by one. Without `warm` it starts cold."""

    compiled: Path
    keys: Path
    state: Path
    audit: Path
    fault: str = "none"
    port: int = 0
    folder: Path = ROOT  # in which it is started
    flags: tuple[str, ...] = ()
    log: list[dict[str, Any]] = field(default_factory=list)
    process: subprocess.Popen[str] | Command | None = None
    warm: Warm | None = None

    def start(self) -> ServerProcess:
        self._lines: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        flags = ("--listen", f"127.0.0.1:{self.port}", "--metrics", "127.0.0.1:0", "--workers", "2", *self.flags)
        words = self.command("serve", self.compiled, "--keys", self.keys, "--state", self.state, *flags)
        where = environment(self.audit)
        if self.warm is not None:
            self.process = self.warm.start(*words[words.index("-m") :], cwd=self.folder, env=where)
        else:
            self.process = subprocess.Popen(words, cwd=self.folder, env=where, stderr=subprocess.PIPE, text=True)
        self._reader = threading.Thread(target=self._read, args=(self.process,), daemon=True)
        self._reader.start()
        serving = self.wait_for("serving")
        self.port, self.metrics_port = serving["port"], serving["metrics_port"]
        return self

    def command(self, *arguments: str | Path) -> list[str]:
        return command(self.fault, *arguments)

    def wait_for(self, event: str, **fields: object) -> dict[str, Any]:
        """The next log line of this kind."""
        while True:
            line = self._lines.get(timeout=WAIT_S)
            assert line is not None, f"the server ended before {event}: {self.log}"
            if line["event"] == event and fields.items() <= line.items():
                return line

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        if self.process is None:
            return 0
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.ended()

    def ended(self) -> int:
        assert self.process is not None
        code = self.process.wait(WAIT_S)
        self._reader.join(WAIT_S)
        return code

    def _read(self, process: subprocess.Popen[str] | Command) -> None:
        assert process.stderr is not None
        with process.stderr:
            for text in process.stderr:
                line = json.loads(text) if text.startswith("{") else {"event": "text", "text": text}
                self.log.append(line)
                self._lines.put(line)
        self._lines.put(None)


def infer(
    server: ServerProcess, keys: Path, *arguments: str | Path, fault: str = "none"
) -> subprocess.CompletedProcess[str]:
    """`sphynx infer` to its end; cold where it may be killed."""
    where = ("--server", f"127.0.0.1:{server.port}", "--keys", keys, "--json", "--timeout", "30")
    words = command(fault, "infer", *arguments, *where)
    if server.warm is not None and fault == "none":
        words = [str(server.warm.programs / "python"), *words[words.index("-m") :]]
    return subprocess.run(
        words,
        cwd=ROOT,
        env=environment(server.audit),
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )


def used_twice(audit: Path) -> list[str]:
    lines = audit.read_text().splitlines() if audit.exists() else []
    return [line for line, times in Counter(lines).items() if times > 1]
