"""Openings by turns: two parties open masked planes to each other, each opening needing both parties' one before.

    server   0 head         1 2         3 ...
    client            0 1         2 3         ... tail

A message has the opening that the peer waits for and the next one, for which the peer's last message was enough: half
as many messages as if both sent every opening at once, and none comes later. The server sends `head` with the first,
the client `tail` after the last. Semi-honest: a party that sees the other's opening first sends its own all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from sphynx.core.gmw import turns
from sphynx.protocol.channel import Channel
from sphynx.protocol.relu_layer import Words
from sphynx.protocol.transport import Buffer


class Opener(Protocol):
    """Opens in order, each time after it has closed what it opened before."""

    def open(self, number: int, /) -> Words: ...

    def close(self, number: int, received: Words, /) -> None: ...


def lead(channel: Channel, party: Opener, sizes: Sequence[int], head: Sequence[Buffer], tail_bytes: int) -> memoryview:
    """The server's side, `sizes` being the bytes of each opening; the client's tail."""
    own, answer = _Turns(party, sizes), memoryview(b"")
    for turn in range(last := turns(len(sizes))):
        channel.send(*own.take(answer), *(() if turn else head))
        opened_bytes = sum(sizes[2 * turn : 2 * turn + 2])
        message = memoryview(channel.receive(opened_bytes + tail_bytes * (turn + 1 == last)))
        answer = message[:opened_bytes]
    own.take(answer)
    return message[opened_bytes:]


def follow(
    channel: Channel,
    party: Opener,
    sizes: Sequence[int],
    head_bytes: int,
    begin: Callable[[memoryview], None],
    tail: Callable[[], Buffer],
) -> None:
    """The client's side: `begin` is told the head before anything is opened, `tail` is asked for at the end."""
    own = _Turns(party, sizes)
    for turn in range(last := turns(len(sizes))):
        opened_bytes = sum(sizes[max(0, 2 * turn - 1) : 2 * turn + 1])
        message = memoryview(channel.receive(opened_bytes + head_bytes * (turn == 0)))
        if turn == 0:
            begin(message[opened_bytes:])
        opened = own.take(message[:opened_bytes])
        channel.send(*opened, *([tail()] if turn + 1 == last else []))


class _Turns:
    def __init__(self, party: Opener, sizes: Sequence[int]) -> None:
        self._party, self._sizes = party, sizes
        self._opened = self._closed = 0

    def take(self, message: memoryview) -> list[Buffer]:
        """Closes with the peer's openings; one's own that it has not got yet, and the next."""
        new: list[Buffer] = []
        while len(message):
            if self._opened == self._closed:
                new.append(self._open())
            size = self._sizes[self._closed]
            self._party.close(self._closed, np.frombuffer(message[:size], np.uint64))
            self._closed += 1
            message = message[size:]
        if self._opened < len(self._sizes):
            new.append(self._open())
        return new

    def _open(self) -> Buffer:
        self._opened += 1
        return self._party.open(self._opened - 1).data
