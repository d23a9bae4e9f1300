"""News for every open page: each subscriber gets all of it in order, and first the latest of each kind.

A page that does not read loses its oldest news, never the latest.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Iterator
from typing import Any

News = tuple[str, dict[str, Any]]  # its kind and what it says
MOST_WAITING = 256


class Bulletin:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._latest: dict[str, dict[str, Any]] = {}
        self._subscribers: list[queue.Queue[News]] = []

    def publish(self, kind: str, news: dict[str, Any]) -> None:
        with self._lock:
            self._latest[kind] = news
            for waiting in self._subscribers:
                if waiting.full():
                    waiting.get_nowait()
                waiting.put_nowait((kind, news))

    @contextlib.contextmanager
    def subscribed(self) -> Iterator[queue.Queue[News]]:
        waiting: queue.Queue[News] = queue.Queue(MOST_WAITING)
        with self._lock:
            for news in self._latest.items():
                waiting.put_nowait(news)
            self._subscribers.append(waiting)
        try:
            yield waiting
        finally:
            with self._lock:
                self._subscribers.remove(waiting)
