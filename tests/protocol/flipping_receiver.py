"""The core's OT receiver with choices flipped in one tree of a finished message, of which its check knows nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.protocol.own_receiver import PARAMETER, TILE, TREES, Words

from sphynx.core import ot


class FlippingReceiver(ot.OtReceiver):
    """Flips the choices of `flips` (OT: guess) in `tree`, in one extension: the one that comes after `start` others."""

    start, tree = -1, 1
    flips: dict[int, int]
    done = 0

    def correlated(self, choices: Words, count: int, *, threads: int = 0) -> tuple[Words, Words]:
        message, t = super().correlated(choices, count, threads=threads)
        self._flip(message, t, TREES, self.tree)
        return message, t

    def correlated_random(self, count: int, *, threads: int = 0) -> tuple[Words, Words, Words]:
        message, choices, t = super().correlated_random(count, threads=threads)
        self._flip(message, t, TREES - 1, self.tree - 1)  # of the first tree nothing is sent
        return message, choices, t

    def _flip(self, message: Words, t: Words, trees: int, place: int) -> None:
        self.done += 1
        if self.done != self.start + 1:
            return
        body = len(message) - 3 * self._ots.checked
        for index, guess in self.flips.items():
            tile, bit = divmod(index, 128 * TILE)
            columns = min(TILE, body // trees - TILE * tile)
            at = trees * TILE * tile + place * columns + bit // 128
            message[at, bit // 64 % 2] ^= np.uint64(1) << np.uint64(bit % 64)
            t[index, PARAMETER * self.tree // 64] ^= np.uint64(guess) << np.uint64(PARAMETER * self.tree % 64)


def flipping(monkeypatch: pytest.MonkeyPatch, **told: Any) -> Callable[[], FlippingReceiver]:
    """Make the client's receiver a changed one: the first that is made, since the server's waits for its set-up."""
    made: list[FlippingReceiver] = []
    honest = ot.OtReceiver

    def receiver(*arguments: Any, **named: Any) -> ot.OtReceiver:
        if made:
            return honest(*arguments, **named)
        made.append(FlippingReceiver(*arguments, **named))
        vars(made[0]).update(told)
        return made[0]

    monkeypatch.setattr(ot, "OtReceiver", receiver)
    return lambda: made[0]
