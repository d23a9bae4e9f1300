"""Which prepared weights are held where memory for them is bounded.

A program has two sets of them, for an image alone and for groups of images (linear_plan.py): their packings differ, so
neither is made of the other, and each takes about as much memory. Where both do not fit, the set that is asked for more
holds the memory. It takes over map by map, as it transforms them anyway: the other's are dropped, and nothing is
transformed that would not have been. What was asked for lately counts more, and a set has to be asked for LEAD times
as much as the other to take memory from it, so that both in turn do not drop each other's weights all the time.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Literal

from sphynx.core import rlwe

SetName = Literal["alone", "together"]
LEAD = 2.0
FADING = 0.9  # of what was asked for before, each time that something is asked for


class WeightMemory:
    """The memory of one server's weights. Threads share it."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._asked = {"alone": 0.0, "together": 0.0}
        self._counting = threading.Lock()
        self._changing = threading.Lock()  # held while a map is transformed; nobody waits for it

    def ask(self, kind: SetName) -> None:
        """Count a preparation."""
        with self._counting:
            self._asked = {other: FADING * count + (other == kind) for other, count in self._asked.items()}

    def hold(
        self, kind: SetName, wanted: rlwe.PreparedConv, size: int, sets: Mapping[SetName, Sequence[rlwe.PreparedConv]]
    ) -> None:
        """Hold a map of a set from now on, if its `size` fits or it may take memory from the other set. Whoever comes
        while another thread changes what is held leaves it as it is."""
        if not wanted.is_movable or not self._changing.acquire(blocking=False):
            return
        try:
            if wanted.is_held:  # asked here: another thread may have held it just now
                return
            every = {id(conv): conv for convs in sets.values() for conv in convs}  # both sets have some in common
            missing = sum(conv.bytes for conv in every.values()) + size - self._limit_bytes
            own = {id(conv) for conv in sets[kind]}
            others = [conv for conv in every.values() if conv.is_held and conv.is_movable and id(conv) not in own]
            if missing > sum(conv.bytes for conv in others) * self._leads(kind):
                return
            while missing > 0:
                dropped = others.pop()
                missing -= dropped.bytes
                dropped.drop()
            wanted.hold()
        finally:
            self._changing.release()

    def _leads(self, kind: SetName) -> bool:
        asked = self._asked  # `ask` puts another in its place and changes none
        return all(asked[kind] >= LEAD * count for other, count in asked.items() if other != kind)
