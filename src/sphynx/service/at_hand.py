"""Bundles in memory beside their files, so that they need not be read back: one of any size, more up to a limit.

Any thread may call. Another process may use a bundle that is at hand here; it is forgotten when its place is needed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from sphynx.protocol.bundle import Bundle


class AtHand:
    def __init__(self, most_bytes: int, is_usable: Callable[[bytes], bool]) -> None:
        self._most_bytes, self._is_usable = most_bytes, is_usable
        self._held: dict[bytes, Bundle] = {}
        self._held_bytes = 0
        self._changing = threading.Lock()

    def __contains__(self, bundle_id: bytes) -> bool:
        with self._changing:
            return bundle_id in self._held

    def offer(self, bundle: Bundle) -> None:
        """Keeps it if there is room: the older ones will be wanted first."""
        with self._changing:
            if self._has_room(bundle):
                self._add(bundle)

    def put_first(self, bundle: Bundle) -> None:
        """Keeps it, in place of the newest others."""
        with self._changing:
            while not self._has_room(bundle):
                self._remove(next(reversed(self._held)))
            self._add(bundle)

    def let_go(self, bundle_id: bytes) -> Bundle | None:
        """The bundle, if it is at hand; it is then no longer."""
        with self._changing:
            return self._remove(bundle_id)

    def clear(self) -> None:
        with self._changing:
            self._held.clear()
            self._held_bytes = 0

    def _has_room(self, bundle: Bundle) -> bool:
        if not self._fits(bundle):
            for bundle_id in [*self._held]:
                if not self._is_usable(bundle_id):
                    self._remove(bundle_id)
        return self._fits(bundle)

    def _fits(self, bundle: Bundle) -> bool:
        return not self._held or self._held_bytes + bundle.bytes <= self._most_bytes

    def _add(self, bundle: Bundle) -> None:
        self._remove(bundle.bundle_id)
        self._held[bundle.bundle_id] = bundle
        self._held_bytes += bundle.bytes

    def _remove(self, bundle_id: bytes) -> Bundle | None:
        bundle = self._held.pop(bundle_id, None)
        self._held_bytes -= bundle.bytes if bundle else 0
        return bundle
