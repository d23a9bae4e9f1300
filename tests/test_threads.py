"""Threads that start, fail to start, or die before they begin: nobody waits for ever."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from sphynx import threads
from sphynx.threads import Helper, Worker
from tests.service.processes import ROOT


def test_a_worker_runs_and_is_waited_for() -> None:
    go_on, done = threading.Event(), list[int]()

    def work() -> None:
        go_on.wait()
        done.append(threading.get_ident())

    worker = Worker(work)
    assert worker.is_alive and not worker.join(0.01)
    go_on.set()
    assert worker.join() and not worker.is_alive and worker.has_begun
    assert done and done[0] != threading.get_ident()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # it is said on stderr
def test_an_error_ends_the_worker_alone() -> None:
    assert Worker(lambda: list[int]().remove(1)).join(20)
    assert Worker(lambda: None).join(20)


def test_a_forked_process_has_none_of_them() -> None:
    go_on = threading.Event()

    def wait() -> None:
        go_on.wait()

    worker = Worker(wait)
    child = os.fork()
    if not child:
        os._exit(0 if worker.join() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert worker.is_alive
    go_on.set()
    assert worker.join(20)


def test_a_helper_makes_calls_in_order_and_raises_what_they_raise() -> None:
    made: list[int] = []
    with Helper() as helper:
        calls = [helper.begin(lambda number=number: made.append(number)) for number in range(20)]  # type: ignore[misc]
        calls[-1].finish()
        for call in calls[:-1]:
            call.finish()
        assert sorted(made) == list(range(20))  # the last may be made here before the others are there
        failing = helper.begin(lambda: made.remove(99))
        with pytest.raises(ValueError, match="not in list"):
            failing.finish()
        helper.begin(lambda: made.append(20)).finish()
    assert made[-1] == 20


def test_without_a_thread_calls_are_made_by_whoever_wants_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(*_: object) -> int:
        raise RuntimeError("can't start new thread")

    makers: list[int] = []
    monkeypatch.setattr(threads, "start_new_thread", none_left)
    with Helper() as helper:
        helper.begin(lambda: makers.append(threading.get_ident())).finish()
    monkeypatch.setattr(threads, "start_new_thread", lambda *_: 0)  # it dies before it begins
    with Helper() as helper:
        helper.begin(lambda: makers.append(threading.get_ident())).finish()
    assert makers == [threading.get_ident()] * 2


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and RLIMIT_AS")
def test_without_memory_a_thread_dies_and_nobody_hangs() -> None:
    """A plain `threading.Thread` does hang here: `python tests/exhausted_memory.py thread`."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command: list[str | Path] = [sys.executable, ROOT / "tests" / "exhausted_memory.py", "worker"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=True)
    endings = done.stdout.split()
    assert len(endings) == 8 and "hangs" not in endings, endings


def test_torchs_threads_sleep_while_they_wait_unless_told_otherwise() -> None:
    asked = "import os, sys, sphynx; print(os.environ['OMP_WAIT_POLICY'], 'torch' in sys.modules)"
    given = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    for environment, policy in ((given, "passive"), ({**given, "OMP_WAIT_POLICY": "active"}, "active")):
        told = subprocess.run(
            [sys.executable, "-c", asked], env=environment, capture_output=True, text=True, check=True
        )
        assert told.stdout.split() == [policy, "False"]
