"""The OT sessions of one connection: base OTs in both directions, then SoftSpoken extension (eprint 2022/192).

In `down` the server is the extension's sender, in `up` the client is. Set-up, each message by both at once:

    A                 first message of the base OTs, 32 bytes
    B_1 .. B_128      answers to the peer's A, chosen by the bits of the own offset, 4,096 bytes
    setup             masked sums of the extension's trees, 4,112 bytes

The sessions serve every bundle of the connection: positions move on with each extension, no pad is used twice.
Both parties extend in the same order. The offset of `down` is also the server's garbling offset.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sphynx.core import Prg, garbling, ot
from sphynx.protocol.base_ot import POINT_BYTES, BaseOtReceiver, BaseOtSender
from sphynx.protocol.channel import Channel

Words = NDArray[np.uint64]

SOFTSPOKEN_PARAMETER = 4  # 4 bytes of traffic per OT for about four AES blocks of work
_BLOCK_BYTES = 16


@dataclass(frozen=True)
class ServerOts:
    down: ot.OtSender
    up: ot.OtReceiver
    delta: Words  # the offset of `down`, lowest bit 1


@dataclass(frozen=True)
class ClientOts:
    down: ot.OtReceiver
    up: ot.OtSender


def set_up_server(channel: Channel, prg: Prg) -> ServerOts:
    delta = garbling.random_delta(prg)
    down, up = _set_up(channel, delta)
    return ServerOts(down, up, delta)


def set_up_client(channel: Channel, prg: Prg) -> ClientOts:
    up, down = _set_up(channel, garbling.random_delta(prg))
    return ClientOts(down, up)


def _set_up(channel: Channel, delta: Words) -> tuple[ot.OtSender, ot.OtReceiver]:
    """The session in which this party is the sender, by its offset, and the one in which it is the receiver."""
    offers, chooses = BaseOtSender(), BaseOtReceiver(delta[0], ot.BASE_OTS)
    channel.send(offers.first_message)
    answer, keys = chooses.answer(bytes(channel.receive(POINT_BYTES)))
    channel.send(answer)
    receiver = ot.OtReceiver(SOFTSPOKEN_PARAMETER, offers.keys(bytes(channel.receive(ot.BASE_OTS * POINT_BYTES))))
    channel.send(receiver.setup.data)
    setup = np.frombuffer(channel.receive(ot.SETUP_BLOCKS * _BLOCK_BYTES), np.uint64).reshape(-1, 2)
    return ot.OtSender(SOFTSPOKEN_PARAMETER, delta, keys, setup), receiver
