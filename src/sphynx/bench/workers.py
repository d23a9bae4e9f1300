"""Processes of a benchmark: started together, each with a pipe to this one, and gone when the benchmark is.

A worker's function gets its end of the pipe as its first argument. What it sends there is ("done", value), and what it
returns is sent so too; where it fails, ("failed", why) is sent instead.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from typing import Any

from sphynx.errors import ConnectionLostError, SphynxError

JOIN_SECONDS = 10.0
Told = tuple[str, Any]


@contextmanager
def workers(*work: tuple[Any, ...]) -> Iterator[list[Connection]]:
    """A process for each (function, argument, ...); gives this side's ends of their pipes."""
    spawn = multiprocessing.get_context("spawn")
    ends, processes = [], []
    try:
        for function_and_arguments in work:
            end, told = spawn.Pipe()
            process = spawn.Process(target=_report_to, args=(told, *function_and_arguments), daemon=True)
            process.start()
            told.close()
            ends.append(end)
            processes.append(process)
        yield ends
    except BaseException:
        for process in processes:
            process.terminate()  # the others may wait for a word that will not come
        raise
    finally:
        for process in processes:
            process.join(timeout=JOIN_SECONDS)
            if process.is_alive():
                process.terminate()


def tell(end: Connection, word: Any) -> None:
    """One that is gone hears nothing; `told_by` says so."""
    with suppress(OSError):
        end.send(word)


def told_by(end: Connection) -> Told:
    try:
        outcome, value = end.recv()
        return outcome, value
    except (EOFError, OSError):  # the latter where it had not yet read what it was sent
        return "failed", "the process ended without an error message (perhaps it ran out of memory)"


def told_by_all(ends: Sequence[Connection]) -> list[Told]:
    """A word of each, in their order; where one fails, what was told until then, as the others may wait for it in vain.

    A lost connection only follows from a failure: the one that failed then has a while to say why.
    """
    told: dict[Connection, Told] = {}
    while len(told) < len(ends):
        failures = [str(value) for outcome, value in told.values() if outcome == "failed"]
        if not all(map(_is_lost_connection, failures)):
            break
        ready = wait([end for end in ends if end not in told], timeout=JOIN_SECONDS if failures else None)
        if not ready:
            break
        told |= {end: told_by(end) for end in ends if end in ready}
    return [told[end] for end in ends if end in told]


def values_of(told: Iterable[Told], *, where: str, remedy: str) -> list[Any]:
    """Or the failure. Where one process fails, those that talk to it only see a lost connection: it goes first."""
    told = list(told)
    failures = [str(value) for outcome, value in told if outcome == "failed"]
    failures.sort(key=_is_lost_connection)
    if failures:
        raise SphynxError(failures[0], where=where, remedy=remedy)
    return [value for _, value in told]


def _is_lost_connection(why: str) -> bool:
    return ConnectionLostError.__name__ in why


def _report_to(told: Connection, work: Callable[..., Any], *arguments: Any) -> None:
    try:
        told.send(("done", work(told, *arguments)))
    except Exception as error:  # the parent shows it
        told.send(("failed", f"{type(error).__name__}: {error}"))
    finally:
        told.close()
