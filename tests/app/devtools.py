"""Headless Chromium, driven by the DevTools protocol over a pipe: messages are JSON, a NUL byte after each."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any, Self

CHROMIUM = shutil.which("chromium")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
)
DEADLINE_SECONDS = 120.0


class Browser:
    """One page. `requests` and `complaints` (console errors, exceptions, refusals of the policy) are kept."""

    def __init__(self, profile: Path, *flags: str) -> None:
        assert CHROMIUM is not None
        (there, self._write), (self._read, back) = os.pipe(), os.pipe()
        # The browser reads descriptor 3 and writes 4.
        command = 'exec "$@" 3<&"$IN" 4>&"$OUT"'
        self._process = subprocess.Popen(
            ["bash", "-c", command, "-", CHROMIUM, *FLAGS, *flags, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(there, back),
            env={**os.environ, "IN": str(there), "OUT": str(back)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(there)
        os.close(back)
        self._number, self._buffer, self._session = 0, b"", ""
        self.requests: list[str] = []
        self.complaints: list[str] = []

    def __enter__(self) -> Self:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._write)
        os.close(self._read)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            reply = self._next()
            if reply.get("id") == self._number:
                assert "error" not in reply, (method, reply)
                return dict(reply["result"])

    def look(self, width: int, height: int, scheme: str) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def evaluate(self, expression: str) -> Any:
        found = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait_for(self, expression: str) -> Any:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not (found := self.evaluate(expression)):
            assert time.monotonic() < deadline, (expression, self.complaints)
            time.sleep(0.05)
        return found

    def press(self, key: str, code: int) -> None:
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    def paste(self) -> None:
        """Ctrl-V, as a user types it: what the clipboard holds arrives as a paste event."""
        key = {"key": "v", "code": "KeyV", "windowsVirtualKeyCode": 86, "modifiers": 2}
        self.call("Input.dispatchKeyEvent", type="rawKeyDown", commands=["paste"], **key)
        self.call("Input.dispatchKeyEvent", type="keyUp", **key)

    def screenshot(self, *, whole: bool = True) -> bytes:
        """The whole page or what the window shows of it, as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=whole)["data"])

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            assert select.select([self._read], [], [], DEADLINE_SECONDS)[0], "the browser is silent"
            taken = os.read(self._read, 1 << 20)
            assert taken, "the browser is gone"
            self._buffer += taken
        first, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(first)
        self._keep(message.get("method", ""), message.get("params", {}))
        return message

    def _keep(self, event: str, said: dict[str, Any]) -> None:
        if event == "Network.requestWillBeSent":
            self.requests.append(said["request"]["url"])
        elif event == "Runtime.exceptionThrown":
            self.complaints.append(str(said["exceptionDetails"]))
        elif event == "Runtime.consoleAPICalled" and said["type"] in ("error", "warning"):
            self.complaints.append(str(said["args"]))
        elif event == "Log.entryAdded" and said["entry"]["level"] in ("error", "warning"):
            self.complaints.append(str(said["entry"]))
