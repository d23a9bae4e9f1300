"""Tasks that wait for one another, several at a time beside each other on one device, each a forked process.

A task is finished when the file that it makes is there, so that the same call goes on where one was stopped. At the end
of the time, or at SIGTERM, those that run get SIGINT, at which trainings save. They get it as well when this process is
killed: nothing is left running that the next call would meet.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import wait
from multiprocessing.context import ForkProcess
from pathlib import Path

import torch

from reproduction.task_minutes import FILE, TaskMinutes
from sphynx.errors import InterruptedWorkError

LEAST_SECONDS = 20.0  # with fewer left nothing is started
GRACE_SECONDS = 25.0  # from SIGINT until a task is killed
TOLD_SECONDS = 5.0  # that tasks may take to end where somebody else's signal may have reached them, too
LOOK_SECONDS = 1.0  # between looks at what was told, and at whether a task still has its parent
INTERRUPTED = 130
NAMED = 8  # of the tasks that are left
END = "end"


@dataclass(frozen=True)
class Task:
    work: Callable[[], object]
    makes: Path
    needs: tuple[str, ...] = ()  # names of tasks
    quick: bool = False  # done in this process, and tried though a task that it needs failed


def run_tasks(
    tasks: Mapping[str, Task],
    names: Collection[str],
    *,
    jobs: int,
    seconds: float,
    logs: Path,
    keep: Callable[[], object] | None = None,
) -> bool:
    """Run those of `names` whose needs are met, in their order; return whether all of them are finished. `keep` is
    called whenever one ended, so that whatever ends this process leaves so much."""
    logs.mkdir(parents=True, exist_ok=True)
    queue = _Queue(tasks, names, jobs, logs, keep)
    queue.tell("begin")
    with _told_to_stop() as told:
        try:
            queue.loop(time.monotonic() + seconds, told)
        finally:  # also where a quick task or `keep` failed: this process would wait for the others, however long
            queue.stop(TOLD_SECONDS if told.is_set() else 0.0)
    queue.tell(END)
    return all(map(queue.finished, names))


class _Queue:
    def __init__(
        self,
        tasks: Mapping[str, Task],
        names: Collection[str],
        jobs: int,
        logs: Path,
        keep: Callable[[], object] | None,
    ) -> None:
        self.tasks, self.names, self.jobs, self.logs, self.keep = tasks, names, jobs, logs, keep
        self.minutes = TaskMinutes(logs / FILE, {need for task in tasks.values() for need in task.needs})
        self.running: dict[str, ForkProcess] = {}
        self.began: dict[str, float] = {}
        self.ended: set[str] = set()
        self.failed: list[str] = []

    def finished(self, name: str) -> bool:
        return name not in self.running and self.tasks[name].makes.is_file()

    def ready(self, name: str) -> bool:
        task = self.tasks[name]
        if self.finished(name) or name in self.running or name in self.ended:
            return False
        return all(self.finished(need) or (task.quick and need in self.ended) for need in task.needs)

    def loop(self, ends: float, told: threading.Event) -> None:
        while time.monotonic() < ends and not told.is_set():
            for name in filter(self.ready, self.names):
                if self.tasks[name].quick:
                    self.tasks[name].work()
                    self.ended.add(name)
                elif len(self.running) < self.jobs and ends - time.monotonic() > LEAST_SECONDS:
                    _say(f"start {name}")
                    self.began[name] = time.monotonic()
                    self.running[name] = _fork(self.tasks[name], self.log(name))
            if not self.running:
                return
            within = min(LOOK_SECONDS, max(0.0, ends - time.monotonic()))
            wait([process.sentinel for process in self.running.values()], timeout=within)
            for name in [name for name, process in self.running.items() if not process.is_alive()]:
                self.end(name)
                self.tell("now")
                if self.keep is not None:
                    self.keep()

    def end(self, name: str, *, killed: bool = False) -> None:
        process = self.running.pop(name)
        minutes, code = (time.monotonic() - self.began.pop(name)) / 60, process.exitcode
        self.ended.add(name)
        self.minutes.add(name, minutes, finished=self.finished(name))
        _say(f"end {name} after {minutes:.1f} min" + ("" if code == 0 else f": exit code {code}"))
        if code not in (0, INTERRUPTED) and not killed:
            self.failed.append(name)
        for line in _last(self.log(name), 0 if code == 0 else 1 if code == INTERRUPTED or killed else 8):
            print(f"    {line}", flush=True)

    def stop(self, own_seconds: float) -> None:
        """Ask those that run to save and end. `own_seconds`: how long they may take before they are asked."""
        until = time.monotonic() + own_seconds
        for process in self.running.values():
            process.join(max(0.0, until - time.monotonic()))
        for process in self.running.values():
            if process.pid is not None and process.is_alive():
                os.kill(process.pid, signal.SIGINT)
        until = time.monotonic() + GRACE_SECONDS
        for name, process in list(self.running.items()):
            process.join(max(0.0, until - time.monotonic()))
            if killed := process.is_alive():
                process.kill()
                process.join()
            self.end(name, killed=killed)

    def log(self, name: str) -> Path:
        return self.logs / f"{name}.log"

    def tell(self, when: str) -> None:
        """Say how much is finished, and how long the rest takes by what its like took."""
        left = [name for name in self.names if not self.finished(name)]
        said = f"{when}: {len(self.names) - len(left)} of {len(self.names)} tasks are finished"
        so_far = {name: (time.monotonic() - began) / 60 for name, began in self.began.items()}
        minutes, unknown = self.minutes.left(left, self.jobs, so_far)
        if len(left) > unknown:
            said += f", {len(left) - unknown} others take about {minutes:.0f} min more, {self.jobs} at a time"
        if unknown:
            said += f", {unknown} are unlike any that is finished"
        _say(said)
        if left and when == END:
            more = f" and {len(left) - NAMED} more" if len(left) > NAMED else ""
            _say(f"left: {', '.join(left[:NAMED])}{more}; failed: {', '.join(self.failed) or 'none'}")


def _fork(task: Task, log: Path) -> ForkProcess:
    """Torch and the data are there already in a fork, and CUDA has not been touched."""
    process = multiprocessing.get_context("fork").Process(target=_do, args=(task, log, os.getpid()))
    process.start()
    return process


def _do(task: Task, log: Path, parent: int) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    end_with(parent)
    file = log.open("a", buffering=1)
    sys.stdout = sys.stderr = file
    for descriptor in (1, 2):  # of what writes without Python
        os.dup2(file.fileno(), descriptor)
    torch.set_num_threads(1)  # the threads of OpenMP did not come along, and are waited for where there should be some
    try:
        task.work()
    except (InterruptedWorkError, KeyboardInterrupt):
        sys.exit(INTERRUPTED)
    except Exception:
        traceback.print_exc()
        sys.exit(1)


def end_with(parent: int) -> None:
    """Let this process save and end when its parent was killed, as that would have asked for."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(LOOK_SECONDS)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(GRACE_SECONDS)
        os._exit(INTERRUPTED)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _told_to_stop() -> Iterator[threading.Event]:
    """Set by SIGINT and SIGTERM, in a process's first thread: no other may ask for signals."""
    told = threading.Event()
    first = threading.current_thread() is threading.main_thread()
    numbers = (signal.SIGINT, signal.SIGTERM) if first else ()
    before = {one: signal.signal(one, lambda *_: told.set()) for one in numbers}
    try:
        yield told
    finally:
        for one, earlier in before.items():
            signal.signal(one, earlier)


def _last(log: Path, lines: int) -> list[str]:
    written = log.read_text(errors="replace").splitlines() if log.is_file() else []
    return [line for line in written if line.strip()][-lines:] if lines else []


def _say(text: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {text}", flush=True)
