"""A sweep's pieces as Ray tasks. Importing this needs the package `ray`.

All pieces travel together, so that the data that they share are sent once to each machine. A task has as many threads
as this process, because sums of floats depend on their number, and asks for as many cores, or for one GPU. A task whose
worker died is tried again up to RETRIES times. A `Voice` in a piece becomes the task's: what it says comes back here
through one actor, with the piece's name before it.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import ray
import torch
from ray.exceptions import RayError

from sphynx import errors
from sphynx.errors import InputError, InterruptedWorkError, SphynxError
from sphynx.run.progress import Voice, speak_with
from sphynx.run.update import Update
from sphynx.units import percent

Result = TypeVar("Result")

RETRIES = 3
REACH_S = 10.0
LOOK_S = 0.5  # for news of the tasks
ANY_ERROR = "SphynxError"


class OnRay:
    may_repeat = True

    def __init__(self, voice: Voice) -> None:
        self._voice = voice
        self._board = ray.remote(num_cpus=0)(_Board).remote()

    def map(self, work: Mapping[str, Callable[[], Result]]) -> list[Result]:
        names, threads = list(work), torch.get_num_threads()
        pieces = ray.put(list(work.values()))
        task = ray.remote(_run).options(max_retries=RETRIES, **_needs(threads))
        running = [task.remote(pieces, at, name, threads, self._board) for at, name in enumerate(names)]
        try:
            return [_value(outcome) for outcome in self._outcomes(names, running)]
        except KeyboardInterrupt:
            for one in running:
                ray.cancel(one, force=True)
            raise InterruptedWorkError() from None

    def _outcomes(self, names: list[str], running: list[Any]) -> list[Any]:
        left, count = list(running), len(running)
        while left:
            done, left = ray.wait(left, num_returns=len(left), timeout=LOOK_S)
            for name, update in ray.get(self._board.take.remote()):
                self._tell(name, update)
            for one in done:
                name = names[running.index(one)]
                self._voice.say(f"{name}: done, {count - len(left)} of {count}", stage="sweep")
        try:
            return list(ray.get(running))
        except RayError as error:
            raise SphynxError(
                f"a task ended {RETRIES + 1} times without a result ({type(error).__name__})",
                where="`ray`",
                remedy="Look at Ray's logs (/tmp/ray/session_latest/logs); `resume=True` continues what was saved.",
            ) from None

    def _tell(self, name: str, update: Update) -> None:
        self._voice.listener(update)
        if self._voice.level == "quiet":
            return
        if update.note:
            self._voice.write(f"{name}: {update.note}")
        elif update.total:
            values = ", ".join(f"{key} {_short(value)}" for key, value in update.values.items())
            self._voice.write(f"{name}: {update.stage} {percent(update.done / update.total, 0)} {values}")


@contextmanager
def on_ray(address: str | None, voice: Voice) -> Iterator[OnRay]:
    """Ends a Ray that was started for this, and leaves one that ran before alone."""
    was_running = ray.is_initialized()
    if not was_running:
        try:
            _reach(address)
            ray.init(address=address, log_to_driver=False, logging_level="ERROR", **_quiet(address))
        except (OSError, RayError, ValueError, RuntimeError) as error:
            raise InputError(
                f"no Ray cluster can be reached ({str(error).partition(chr(10))[0]})",
                where=f'`ray="{address or "local"}"`',
                remedy='Run ray start --head on one machine, or give `ray="local"`.',
            ) from None
    try:
        yield OnRay(voice)
    finally:
        if not was_running:
            ray.shutdown()


def _reach(address: str | None) -> None:
    """Refuse an address where nobody listens: Ray itself would wait for minutes."""
    host, _, port = (address or "").rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host.rpartition("/")[2].strip("[]"), int(port)), timeout=REACH_S).close()


class _Board:
    """An actor: what tasks say, until somebody reads it."""

    def __init__(self) -> None:
        self._said: list[tuple[str, Update]] = []

    def tell(self, name: str, update: Update) -> None:
        self._said.append((name, update))

    def take(self) -> list[tuple[str, Update]]:
        said, self._said = self._said, []
        return said


def _run(pieces: list[Callable[[], Any]], at: int, name: str, threads: int, board: Any) -> tuple[Any, ...]:
    """Run a piece in the worker. Errors go back as values: our own kinds do not survive Ray's wrapping."""
    torch.set_num_threads(threads)
    speak_with(Voice("quiet", lambda update: board.tell.remote(name, update)))
    try:
        return True, pieces[at]()
    except SphynxError as error:
        return False, type(error).__name__, error.what, error.where, error.remedy


def _value(outcome: tuple[Any, ...]) -> Any:
    is_done, *rest = outcome
    if is_done:
        return rest[0]
    kind, what, where, remedy = rest
    known = kind if kind in ("InputError", "DivergedError", "DiskError", "MissingPartError") else ANY_ERROR
    raise getattr(errors, known)(what, where=where, remedy=remedy)


def _needs(threads: int) -> dict[str, float]:
    if torch.cuda.is_available():
        return {"num_gpus": 1}
    most = max(node["Resources"].get("CPU", 0.0) for node in ray.nodes() if node["Alive"])
    return {"num_cpus": min(float(threads), most)}


def _quiet(address: str | None) -> dict[str, Any]:
    return {"include_dashboard": False} if address is None else {}


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
