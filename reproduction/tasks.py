"""Tasks that wait for one another, several at a time beside each other on one device, each a forked process.

A task is finished when the file that it makes is there, so that the same call goes on where one was stopped. At the end
of the time those that run get SIGINT, at which trainings save.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from multiprocessing.connection import wait
from multiprocessing.context import ForkProcess
from pathlib import Path

import torch

from sphynx.errors import InterruptedWorkError

LEAST_SECONDS = 20.0  # with fewer left nothing is started
GRACE_SECONDS = 25.0  # from SIGINT until a task is killed
INTERRUPTED = 130


@dataclass(frozen=True)
class Task:
    work: Callable[[], object]
    makes: Path
    needs: tuple[str, ...] = ()  # names of tasks
    quick: bool = False  # done in this process, and tried though a task that it needs failed


def run_tasks(tasks: Mapping[str, Task], names: Collection[str], *, jobs: int, seconds: float, logs: Path) -> bool:
    """Run those of `names` whose needs are met, in their order; return whether all of them are finished."""
    ends, running, ended = time.monotonic() + seconds, dict[str, ForkProcess](), set[str]()
    logs.mkdir(parents=True, exist_ok=True)

    def finished(name: str) -> bool:
        return name not in running and tasks[name].makes.is_file()

    def ready(name: str) -> bool:
        task = tasks[name]
        if finished(name) or name in running or name in ended:
            return False
        return all(finished(need) or (task.quick and need in ended) for need in task.needs)

    while time.monotonic() < ends:
        for name in filter(ready, names):
            if tasks[name].quick:
                tasks[name].work()
                ended.add(name)
            elif len(running) < jobs and ends - time.monotonic() > LEAST_SECONDS:
                running[name] = _fork(tasks[name], logs / f"{name}.log")
                _say(f"start {name}")
        if not running:
            break
        wait([process.sentinel for process in running.values()], timeout=max(0.0, ends - time.monotonic()))
        for name in [name for name, process in running.items() if not process.is_alive()]:
            code = running.pop(name).exitcode
            ended.add(name)
            _say(f"end {name}" + ("" if code == 0 else f": exit code {code}"))
            if code not in (0, INTERRUPTED):
                print("    " + "\n    ".join((logs / f"{name}.log").read_text().splitlines()[-8:]), flush=True)
    _stop(running)
    return all(map(finished, names))


def _fork(task: Task, log: Path) -> ForkProcess:
    """Torch and the data are there already in a fork, and CUDA has not been touched."""
    process = multiprocessing.get_context("fork").Process(target=_do, args=(task, log))
    process.start()
    return process


def _do(task: Task, log: Path) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    file = log.open("a", buffering=1)
    sys.stdout = sys.stderr = file
    for number in (1, 2):  # of what writes without Python
        os.dup2(file.fileno(), number)
    torch.set_num_threads(1)  # the threads of OpenMP did not come along, and are waited for where there should be some
    try:
        task.work()
    except (InterruptedWorkError, KeyboardInterrupt):
        sys.exit(INTERRUPTED)
    except Exception:
        traceback.print_exc()
        sys.exit(1)


def _stop(running: Mapping[str, ForkProcess]) -> None:
    for name, process in running.items():
        _say(f"stop {name}")
        if process.pid is not None:
            os.kill(process.pid, signal.SIGINT)
    until = time.monotonic() + GRACE_SECONDS
    for process in running.values():
        process.join(max(0.0, until - time.monotonic()))
        if process.is_alive():
            process.kill()
            process.join()


def _say(text: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {text}", flush=True)
