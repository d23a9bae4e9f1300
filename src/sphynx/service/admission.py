"""Limit who may do how much: handshakes, connections, work at once and images per hour.

Strangers (before the handshake) and clients (after it) are counted apart: whoever has no certificate cannot use up the
places of those who have one. `handshakes` has the strangers' part.
Offline and online work have places of their own, so that an inference never waits behind other clients' preparations.
What is prepared ahead, while nobody waits for it, gets the places that both leave free.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from sphynx.errors import InputError, RefusedError
from sphynx.service.handshakes import Handshakes
from sphynx.service.session import MAX_IDS


def available_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class Limits:
    """The limits of who may do how much at a server.

    >>> limits = sphynx.Limits(images_per_hour=100, connections=8)
    >>> limits.batch
    16
    """

    workers: int = field(default_factory=available_cores)  # offline and online, each
    handshakes: int = 256  # peers at once that have not proved who they are
    connections: int = 64
    connections_per_client: int = 16  # as many processes may share one client's keys
    bundles_per_client: int = 16  # at most MAX_IDS: a server names them all when a client connects
    images_per_hour: int = 3600  # of one client: inferred, and apart from those, prepared for
    batch: int = 16
    quota_bytes: int = 16 << 30
    memory_bytes: int = 512 << 20  # for bundles, beside their files; a server's half has some 90 bytes for each ReLU
    weight_memory_bytes: int | None = None  # of prepared weights; None: all of them are held
    unread_bytes: int = 1 << 30  # of answers, in memory, over all connections
    bundle_lifetime_s: float = 7 * 86_400.0
    handshake_s: float = 10.0
    message_s: float = 60.0  # for a message that is due
    online_message_s: float = 10.0  # in an inference: below `queue_s`, so that who waits behind a silent one is served
    idle_s: float = 600.0  # between requests
    queue_s: float = 30.0  # for a worker to become free
    work_s: float = 900.0  # for one bundle or one inference, all messages together
    grace_s: float = 30.0  # for running work, once the server stops

    def __post_init__(self) -> None:
        """Refuse limits of 0, where a server would take nobody and say that it is busy."""
        for name, value in vars(self).items():
            may_be_none = name == "grace_s" or name.endswith("_bytes")
            if value is not None and (value < 0 if may_be_none else value <= 0):
                least = "at least" if may_be_none else "above"
                raise InputError(f"{name} = {value}: must be {least} 0", where="Limits", remedy="Choose another value.")
        if self.bundles_per_client > MAX_IDS:
            raise InputError(
                f"bundles_per_client = {self.bundles_per_client}: must be at most {MAX_IDS}",
                where="Limits",
                remedy="Choose a smaller value, or give a client keys for each of its devices.",
            )


class Places:
    """A number of places, at most so many for one holder."""

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
                raise RefusedError("the server is busy", where="server", remedy="Try again in a while.")
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
