"""Signals in real processes: the first one asks, the second one stops."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from sphynx.errors import InterruptedWorkError
from sphynx.run.interrupt import Interrupt

WORK = """
import signal, sys
from sphynx.run.interrupt import Interrupt
with Interrupt() as interrupt:
    print("ready", flush=True)
    while not interrupt.requested:
        signal.pause()
    print("saved", flush=True)
    if sys.argv[1] == "stubborn":
        while True:
            signal.pause()
"""


def start(mode: str) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", WORK, mode], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_lets_the_work_be_saved(number: signal.Signals) -> None:
    process = start("obedient")
    process.send_signal(number)
    assert process.communicate()[0] == "saved\n"
    assert process.returncode == 0


def test_a_second_signal_stops_at_once() -> None:
    process = start("stubborn")
    process.send_signal(signal.SIGINT)
    assert process.stdout is not None and process.stdout.readline() == "saved\n"
    process.send_signal(signal.SIGTERM)
    assert process.wait() == -signal.SIGTERM
    process.stdout.close()


def test_handlers_are_put_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Interrupt() as interrupt:
        os.kill(os.getpid(), signal.SIGTERM)
        assert interrupt.requested
    assert signal.getsignal(signal.SIGINT) is before


def test_other_threads_are_left_alone() -> None:
    seen = []

    def work() -> None:
        with Interrupt() as interrupt:
            seen.append(interrupt.requested)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [False]


def test_the_message_says_how_to_continue() -> None:
    error = InterruptedWorkError(where="epoch 3")
    assert "epoch 3" in str(error) and "resume=True" in error.remedy
