"""Limit who may do how much: handshakes, connections, work at once and images per hour.

Strangers (before the handshake) and clients (after it) are counted apart: whoever has no certificate cannot use up the
places of those who have one. `handshakes` has the strangers' part.
Offline and online work have places of their own, so that an inference never waits behind other clients' preparations.
What is prepared ahead, while nobody waits for it, gets the places that both leave free.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from sphynx.errors import RefusedError
from sphynx.service.handshakes import Handshakes
from sphynx.service.settings import Limits


class Places:
    """A number of places, and the most that one holder gets."""

    def __init__(self, total: int, per_holder: int, changed: threading.Condition | None = None) -> None:
        """`changed` is told of every place that is given back; places that look at each other share it."""
        self._total, self._per_holder = total, per_holder
        self._held: Counter[str] = Counter()
        self._changed = changed or threading.Condition()

    @property
    def taken(self) -> int:
        with self._changed:
            return self._held.total()

    def try_take(self, holder: str) -> bool:
        with self._changed:
            if not self._has_place(holder):
                return False
            self._held[holder] += 1
            return True

    def give_back(self, holder: str) -> None:
        with self._changed:
            self._held[holder] -= 1
            self._held += Counter()  # forgets who holds none
            self._changed.notify_all()

    def take(self, holder: str, wait_s: float) -> None:
        """Waits for a place so long; raises if there is none then."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._has_place(holder), wait_s):
                raise RefusedError("the server is busy", where="server", remedy="Try again later.")
            self._held[holder] += 1

    @contextmanager
    def taken_by(self, holder: str, wait_s: float) -> Iterator[None]:
        self.take(holder, wait_s)
        try:
            yield
        finally:
            self.give_back(holder)

    def _has_place(self, holder: str) -> bool:
        return self._held.total() < self._total and self._held[holder] < self._per_holder


class SparePlaces(Places):
    """Places that others leave of the total. Whoever has one keeps it when others come."""

    def __init__(self, total: int, per_holder: int, changed: threading.Condition, others: tuple[Places, ...]) -> None:
        super().__init__(total, per_holder, changed)
        self._others = others

    def _has_place(self, holder: str) -> bool:
        taken = self._held.total() + sum(other.taken for other in self._others)
        return taken < self._total and super()._has_place(holder)


class Admission:
    """Admit work at the same time within limits. `places`, of another process, stand in for those of this one."""

    def __init__(self, limits: Limits, places: Mapping[str, Places] | None = None) -> None:
        self.limits = limits
        self.handshakes = Handshakes(limits.handshakes)
        if places is None:
            per_client = max(1, limits.workers - 1)  # one client alone cannot keep all others waiting
            changed = threading.Condition()
            offline, online = (Places(limits.workers, per_client, changed) for _ in range(2))
            places = {
                "connections": Places(limits.connections, limits.connections_per_client),
                "offline": offline,
                "online": online,
                "ahead": SparePlaces(limits.workers, per_client, changed, (offline, online)),
            }
        self.places = places
        self.connections, self.offline, self.online = places["connections"], places["offline"], places["online"]
        self.ahead = places["ahead"]
