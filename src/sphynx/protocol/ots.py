"""The OT sessions of one connection: 128 base OTs, then SoftSpoken extension (eprint 2022/192) in both directions.

In `down` the server is the extension's sender, in `up` the client is. Set-up:

    client -> server    A, the base OTs' first message, with a proof                               96 bytes
    server -> client    B_1 .. B_128, chosen by the bits of its offset delta                    4,096 bytes
    client -> server    set-up of `down` with its check                                         5,168 bytes

and before the first bundle that needs `up` (all with gmw; with gc those of programs with gates or truncations):

    client -> server    128 OTs in `down`, chosen by the bits of the client's offset            1,072 bytes
    server -> client    late tweak of those 128 OTs; set-up of `up`, whose base OTs they are    4,128 bytes

Public-key work is thus done once, not once for each direction. The sessions serve every bundle of the connection:
positions move on with each extension, no pad is used twice. Both parties extend in the same order. The offset of `down`
is also the server's garbling offset.

Late tweaks (core/crypto/hash.h) are for `down`, where the receiver is the client, whom the server need not trust: it
could choose its trees to fit tweaks that it knows. In `up` the receiver is the server. Its hashes keep the client's
pads from the server, and the client, who knows both pads of every OT, gains nothing by them: `up` takes early tweaks,
for which no message waits. It is the same with the checks of consistency (core/ot/tree_check.h, row_check.h): in `down`
the client passes them before anything that depends on q leaves the server, in `up` there are none. Checks are bound to
the base OTs, the set-up, every bundle begun so far, and the number and contents of the extension. A server whose client
fails one may not use `down`, nor anything made with its offset, again. Whatever a party draws comes from the one
generator at hand.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from sphynx.core import Prg, garbling, ot
from sphynx.protocol.base_ot import FIRST_BYTES, POINT_BYTES, BaseOtReceiver, BaseOtSender
from sphynx.protocol.channel import Channel

Words = NDArray[np.uint64]
Session = TypeVar("Session")

SOFTSPOKEN_PARAMETER = 4  # 4 bytes of traffic per OT for about four AES blocks of work
_BLOCK_BYTES = 16


def blocks_down(count: int, *, random_choices: bool) -> int:
    """Return the blocks of the client's message for `count` OTs in `down`, its check included."""
    return ot.message_blocks(SOFTSPOKEN_PARAMETER, count, random_choices=random_choices, checked=True)


def blocks_up(count: int) -> int:
    """Return the blocks of the server's message for `count` OTs with random choices in `up`."""
    return ot.message_blocks(SOFTSPOKEN_PARAMETER, count, random_choices=True, checked=False)


_DOWN_BLOCKS = ot.setup_blocks(SOFTSPOKEN_PARAMETER, checked=True)
_UP_BASE_BLOCKS = blocks_down(ot.BASE_OTS, random_choices=False)
_UP_BLOCKS = ot.setup_blocks(SOFTSPOKEN_PARAMETER, checked=False)


@dataclass(frozen=True)
class ServerOts:
    down: ot.OtSender
    delta: Words = field(repr=False)  # the offset of `down`, lowest bit 1
    prg: Prg = field(repr=False)
    other: ot.OtReceiver | None = None

    @property
    def up(self) -> ot.OtReceiver:
        return _set_up(self.other)


@dataclass(frozen=True)
class ClientOts:
    down: ot.OtReceiver
    prg: Prg = field(repr=False)
    other: ot.OtSender | None = None

    @property
    def up(self) -> ot.OtSender:
        return _set_up(self.other)


def set_up_server(channel: Channel, prg: Prg, context: bytes) -> ServerOts:
    """`context` names the conversation to both parties, and neither chose it alone."""
    delta = garbling.random_delta(prg)
    chooses = BaseOtReceiver(delta[0], ot.BASE_OTS, prg)
    first = bytes(channel.receive(FIRST_BYTES))
    answer, keys = chooses.answer(first, context)
    channel.send(answer)
    message = _blocks(channel.receive(_BLOCK_BYTES * _DOWN_BLOCKS))
    down = ot.OtSender(SOFTSPOKEN_PARAMETER, delta, keys, message, prg, checked=True)
    down.bind(first + answer)
    return ServerOts(down, delta, prg)


def set_up_client(channel: Channel, prg: Prg, context: bytes) -> ClientOts:
    offers = BaseOtSender(prg, context)
    channel.send(offers.first_message)
    points = bytes(channel.receive(POINT_BYTES * ot.BASE_OTS))
    down = ot.OtReceiver(SOFTSPOKEN_PARAMETER, offers.keys(points), prg, checked=True)
    down.bind(offers.first_message + points)
    channel.send(down.setup.data)
    return ClientOts(down, prg)


def add_up_server(channel: Channel, ots: ServerOts) -> ServerOts:
    """Set up `up`, unless it is."""
    if ots.other is not None:
        return ots
    message = _blocks(channel.receive(_BLOCK_BYTES * _UP_BASE_BLOCKS))
    tweak, pads = ots.down.late_pads(message, ot.BASE_OTS, random_choices=False)
    pairs = np.stack([pads.zeros, pads.ones], axis=1)
    up = ot.OtReceiver(SOFTSPOKEN_PARAMETER, pairs, ots.prg, checked=False)
    channel.send(tweak, up.setup.data)
    return replace(ots, other=up)


def add_up_client(channel: Channel, ots: ClientOts) -> ClientOts:
    if ots.other is not None:
        return ots
    offset = garbling.random_delta(ots.prg)
    message, t = ots.down.correlated(offset[0], ot.BASE_OTS)
    channel.send(message.data)
    answer = channel.receive(ot.TWEAK_BYTES + _BLOCK_BYTES * _UP_BLOCKS)
    keys = ot.received_pads(t, bytes(answer[: ot.TWEAK_BYTES]))
    setup = _blocks(answer[ot.TWEAK_BYTES :])
    return replace(ots, other=ot.OtSender(SOFTSPOKEN_PARAMETER, offset, keys, setup, ots.prg, checked=False))


def _set_up(other: Session | None) -> Session:
    if other is None:
        raise RuntimeError("the OTs of the other direction are needed and were not set up")
    return other


def _blocks(message: bytearray) -> Words:
    return np.frombuffer(message, np.uint64).reshape(-1, 2)
