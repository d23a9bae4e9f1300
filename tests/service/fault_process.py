"""Runs a sphynx verb in this process with a fault: `python -m tests.service.fault_process online:SIGKILL serve ...`

The signal strikes right after the first message that this party sends in that phase, by `online:SIGKILL:8` after the
eighth. Every bundle that goes into an inference is written to the file $SPHYNX_TEST_AUDIT, one line "role identifier":
a line twice is a bundle used twice.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
import threading
from typing import Any

from sphynx.cli import main as cli
from sphynx.protocol.bundle import Bundle
from sphynx.protocol.channel import Channel
from sphynx.protocol.inference_client import InferenceClient
from sphynx.protocol.inference_server import InferenceServer


def inject(phase: str, number: signal.Signals, message: int) -> None:
    send, sent = Channel.send, itertools.count(1)

    def send_and_fail(self: Channel, *parts: Any) -> None:
        send(self, *parts)
        if self._section.phase == phase and next(sent) == message:
            os.kill(os.getpid(), number)
            threading.Event().wait()  # the signal may first reach another thread: this one does not go on

    Channel.send = send_and_fail


def audit(path: str) -> None:
    for party in (InferenceServer, InferenceClient):
        infer = party.infer

        def audited(self: Any, bundle: Bundle, *rest: Any, infer: Any = infer) -> Any:
            with open(path, "a") as file:  # noqa: PTH123 - one write call appends a whole line
                file.write(f"{bundle.role} {bundle.bundle_id.hex()}\n")
            return infer(self, bundle, *rest)

        party.infer = audited


if __name__ == "__main__":
    phase, *fault = sys.argv.pop(1).split(":")
    if fault:
        if fault[0] == "SIGINT":
            signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored here: tests in the background
        inject(phase, signal.Signals[fault[0]], int(fault[1]) if fault[1:] else 1)
    audit(os.environ["SPHYNX_TEST_AUDIT"])
    cli.main()
