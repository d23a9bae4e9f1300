"""Runs a sphynx verb in this process with a fault: `python -m tests.service.fault_process online:SIGKILL serve ...`

The signal strikes right after the first message that this party sends in that phase. Every bundle that goes into an
inference is written to the file $SPHYNX_TEST_AUDIT, one line "role identifier": a line twice is a bundle used twice.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import Any

from sphynx.cli import main as cli
from sphynx.protocol.bundle import Bundle
from sphynx.protocol.channel import Channel
from sphynx.protocol.inference import InferenceClient, InferenceServer


def inject(phase: str, number: signal.Signals) -> None:
    send = Channel.send

    def send_and_fail(self: Channel, *parts: Any) -> None:
        send(self, *parts)
        if self._section.phase == phase:
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
    phase, _, number = sys.argv.pop(1).partition(":")
    if number:
        inject(phase, signal.Signals[number])
    audit(os.environ["SPHYNX_TEST_AUDIT"])
    cli.main()
