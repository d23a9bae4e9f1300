"""Openings by turns: two parties open masked planes to each other, each needs both parties' previous one.

    server   0 head         1 2         3 ...
    client            0 1         2 3         ... tail

A message has the opening that the peer waits for and the next one, for which the peer's last message was enough: half
as many messages as if both sent every opening at once, and none comes later. The server sends `head` with the first,
the client `tail` after the last. Semi-honest: a party that sees the other's opening first sends its own all the same.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sphynx.core import _native
from sphynx.protocol.channel import Channel
from sphynx.protocol.relu_layer import Words


def lead(channel: Channel, party: _native.GmwServer, count: int) -> Words:
    """The server's side; its shares of the `count` results."""
    channel.send(party.first())
    while not party.is_last:
        channel.send(party.answer(_receive(channel, party)))
    y = np.empty(count, np.uint64)
    party.finish(_receive(channel, party), y)
    return y


def follow(channel: Channel, party: _native.GmwClient) -> None:
    """The client's side."""
    while not party.is_over:
        channel.send(party.answer(_receive(channel, party)))


def _receive(channel: Channel, party: _native.GmwServer | _native.GmwClient) -> NDArray[np.uint8]:
    return np.frombuffer(channel.receive(party.received_bytes), np.uint8)
