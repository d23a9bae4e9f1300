"""A search for inputs that a target neither uses nor refuses: mutation, steered by the lines of Sphynx that it reached.

Deterministic for a seed and a number of executions. Coverage is seen through sys.settrace: no package is needed, and a
few hundred executions a second are enough for parsers of small files. Where atheris is installed,
`python -m tests.fuzz` uses it instead.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from types import FrameType
from typing import Any

import sphynx
from tests.fuzz.mutate import mutated
from tests.fuzz.targets import Target

_SOURCES = tuple(sphynx.__path__)
Lines = set[tuple[str, int]]


class FoundError(Exception):
    """An input that is neither used nor refused."""

    def __init__(self, data: bytes) -> None:
        super().__init__(f"{len(data)} bytes: {data[:200]!r}")
        self.data = data


@dataclass(frozen=True)
class Search:
    executions: int
    used: int  # of them, not refused
    lines: int  # of Sphynx, reached at least once; 0 where nobody looked
    corpus: int


def search(target: Target, *, seed: int, executions: int, seconds: float = 1e9, steered: bool = True) -> Search:
    rng, corpus, lines, used = random.Random(seed), target.seeds() or [b""], Lines(), 0
    given = list(corpus)
    started, done = time.monotonic(), 0
    while done < executions and time.monotonic() - started < seconds:
        data = given[done] if done < len(given) else mutated(rng.choice((given, corpus)), rng)
        reached = Lines()
        try:
            with _tracing(reached) if steered else nullcontext():
                used += target.run(data)
        except Exception as error:
            raise FoundError(data) from error
        if done >= len(given) and not reached <= lines:
            corpus.append(data)
        lines |= reached
        done += 1
    return Search(done, used, len(lines), len(corpus))


@contextmanager
def _tracing(reached: Lines) -> Iterator[None]:
    def line(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            reached.add((frame.f_code.co_filename, frame.f_lineno))
        return line

    def call(frame: FrameType, _event: str, _argument: Any) -> Any:
        return line if frame.f_code.co_filename.startswith(_SOURCES) else None

    before = sys.gettrace()
    sys.settrace(call)
    try:
        yield
    finally:
        sys.settrace(before)
