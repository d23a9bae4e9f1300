"""Requests that run ahead of their answers, as far as that cannot make both parties wait for each other.

Whoever sends all requests before it reads an answer saves round trips. But a stream holds a bounded number of unsent
bytes: a party that waits for room does not read, and if both wait, nothing moves. So what is unanswered stays below
what the own stream holds, and a request beyond that goes out only when the answers before it have been read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Ask(Generic[Answer]):
    request_bytes: int
    send: Callable[[], None]
    receive: Callable[[], Answer]


def answers_ahead(limit_bytes: int, asks: Iterable[Ask[Answer]]) -> Iterator[Answer]:
    """Sends all requests, then gives the answers in order, each read when it is asked for, or earlier for room."""
    waiting: deque[Ask[Answer]] = deque()
    early: list[Answer] = []
    unanswered_bytes = 0
    for ask in asks:
        while waiting and unanswered_bytes + ask.request_bytes > limit_bytes:
            oldest = waiting.popleft()
            early.append(oldest.receive())
            unanswered_bytes -= oldest.request_bytes
        ask.send()
        waiting.append(ask)
        unanswered_bytes += ask.request_bytes
    yield from early
    for ask in waiting:
        yield ask.receive()
