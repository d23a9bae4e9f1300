"""The OT sessions of one connection: 128 base OTs, then SoftSpoken extension (eprint 2022/192) in both directions, and
on it, in either direction, silent OT (core/silent.py) for those preparations that ask for it.

In `down` the server is the extension's sender, in `up` the client is. Set-up:

    client -> server    A, the base OTs' first message, with a proof                               96 bytes
    server -> client    B_1 .. B_128, chosen by the bits of its offset delta                    4,096 bytes
    client -> server    set-up of `down` with its check                                         5,168 bytes

and before the first bundle that needs `up` (all with gmw; with gc those of programs with gates or truncations):

    client -> server    128 OTs in `down`, chosen by the bits of the client's offset            1,072 bytes
    server -> client    late tweak of those 128 OTs; set-up of `up`, whose base OTs they are    4,128 bytes

and before the first bundle whose OTs of a direction are silent, seeds in that direction:

    client -> server    118,912 OTs in `down` with random choices                             461,328 bytes
    server -> client    as many in `up`                                                       460,784 bytes

then before layers for which too few silent OTs are left, as often as it takes:

    server -> client    trees for 1,978,240 OTs in `down`                                     589,824 bytes
    client -> server    as many for `up`                                                      589,824 bytes
    server -> client    what the client shall prove these trees for                                16 bytes
    client -> server    the proof                                                                  32 bytes

Public-key work is thus done once, not once for each direction. The sessions serve every bundle of the connection:
positions move on with each extension, no pad is used twice. Both parties extend in the same order. The offset of `down`
is also the server's garbling offset.

Late tweaks (core/crypto/hash.h) are for `down`, where the receiver is the client, whom the server need not trust: it
could choose its trees to fit tweaks that it knows. In `up` the receiver is the server. Its hashes keep the client's
pads from the server, and the client, who knows both pads of every OT, gains nothing by them: `up` takes early tweaks,
for which no message waits. It is the same with the checks of consistency (core/ot/tree_check.h, row_check.h): in `down`
the client passes them before anything that depends on q leaves the server, in `up` there are none. Checks are bound to
the base OTs, the set-up, every bundle begun so far, and the number and contents of the extension. Of silent OT in
`down` a client sends nothing that could be inconsistent but the seeds, which are such an extension; in `up` it makes
the trees, and the server compares its proof before it uses an OT of them. A server whose client fails a check may not
use `down`, nor anything made with its offset, again: its session ends, and the next one has new base OTs, a new offset
and new seeds. Whatever a party draws comes from the one generator at hand.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from sphynx.core import Prg, garbling, ot, silent
from sphynx.program.cost.ot_messages import (
    BLOCK_BYTES,
    SOFTSPOKEN_PARAMETER,
    blocks_down,
    blocks_up,
)
from sphynx.program.extensions import SOFTSPOKEN, Extensions
from sphynx.protocol.base_ot import FIRST_BYTES, POINT_BYTES, BaseOtReceiver, BaseOtSender
from sphynx.protocol.channel import Channel

Words = NDArray[np.uint64]
Session = TypeVar("Session")

_DOWN_BLOCKS = ot.setup_blocks(SOFTSPOKEN_PARAMETER, checked=True)
_UP_BASE_BLOCKS = blocks_down(ot.BASE_OTS, random_choices=False)
_UP_BLOCKS = ot.setup_blocks(SOFTSPOKEN_PARAMETER, checked=False)
_SESSION_BYTES = 16


@dataclass(frozen=True)
class OtCount:
    """OTs in `down` and in `up`."""

    down: int = 0
    up: int = 0

    def __add__(self, other: OtCount) -> OtCount:
        return OtCount(self.down + other.down, self.up + other.up)


@dataclass
class Stock:
    """Silent OTs that are made and not reserved. Parties use them at different times, and count alike."""

    down: int = 0
    up: int = 0

    def reserve(self, direction: Literal["down", "up"], needed: int) -> int:
        """Take as many, and say how many refills that takes."""
        left = self.down if direction == "down" else self.up
        refills = max(0, -(-(needed - left) // silent.SHAPE.usable))
        setattr(self, direction, left + refills * silent.SHAPE.usable - needed)
        return refills


@dataclass(frozen=True)
class ServerOts:
    few: ot.OtSender  # SoftSpoken's `down`
    delta: Words = field(repr=False)  # the offset of `down`, lowest bit 1
    prg: Prg = field(repr=False)
    said: bytes = field(repr=False)  # the base OTs' messages, of which neither party chose all
    few_up: ot.OtReceiver | None = None
    silent_down: silent.SilentSender | None = None
    silent_up: silent.SilentReceiver | None = None
    made: Extensions = SOFTSPOKEN
    stock: Stock = field(default_factory=Stock)

    def bind(self, said: bytes) -> None:
        """Bind later checks to this as well; the client does the same."""
        self.few.bind(said)

    @property
    def down(self) -> ot.CorrelatedSender:
        return _set_up(self.silent_down) if self.made.down == "silent" else self.few

    @property
    def up(self) -> ot.CorrelatedReceiver:
        return _set_up(self.silent_up if self.made.up == "silent" else self.few_up)


@dataclass(frozen=True)
class ClientOts:
    few: ot.OtReceiver
    prg: Prg = field(repr=False)
    said: bytes = field(repr=False)
    offset: Words | None = field(default=None, repr=False)  # of `up`
    few_up: ot.OtSender | None = None
    silent_down: silent.SilentReceiver | None = None
    silent_up: silent.SilentSender | None = None
    made: Extensions = SOFTSPOKEN
    stock: Stock = field(default_factory=Stock)

    def bind(self, said: bytes) -> None:
        """Bind later checks to this as well; the server does the same."""
        self.few.bind(said)

    @property
    def down(self) -> ot.CorrelatedReceiver:
        return _set_up(self.silent_down) if self.made.down == "silent" else self.few

    @property
    def up(self) -> ot.CorrelatedSender:
        return _set_up(self.silent_up if self.made.up == "silent" else self.few_up)


def set_up_server(channel: Channel, prg: Prg, context: bytes) -> ServerOts:
    """`context` names the conversation to both parties, and neither chose it alone."""
    delta = garbling.random_delta(prg)
    chooses = BaseOtReceiver(delta[0], ot.BASE_OTS, prg)
    first = bytes(channel.receive(FIRST_BYTES))
    answer, keys = chooses.answer(first, context)
    channel.send(answer)
    message = _blocks(channel.receive(BLOCK_BYTES * _DOWN_BLOCKS))
    down = ot.OtSender(SOFTSPOKEN_PARAMETER, delta, keys, message, prg, checked=True)
    down.bind(first + answer)
    return ServerOts(down, delta, prg, first + answer)


def set_up_client(channel: Channel, prg: Prg, context: bytes) -> ClientOts:
    offers = BaseOtSender(prg, context)
    channel.send(offers.first_message)
    points = bytes(channel.receive(POINT_BYTES * ot.BASE_OTS))
    down = ot.OtReceiver(SOFTSPOKEN_PARAMETER, offers.keys(points), prg, checked=True)
    down.bind(offers.first_message + points)
    channel.send(down.setup.data)
    return ClientOts(down, prg, offers.first_message + points)


def add_up_server(channel: Channel, ots: ServerOts) -> ServerOts:
    """Set up `up`, unless it is."""
    if ots.few_up is not None:
        return ots
    message = _blocks(channel.receive(BLOCK_BYTES * _UP_BASE_BLOCKS))
    tweak, pads = ots.few.late_pads(message, ot.BASE_OTS, random_choices=False)
    pairs = np.stack([pads.zeros, pads.ones], axis=1)
    up = ot.OtReceiver(SOFTSPOKEN_PARAMETER, pairs, ots.prg, checked=False)
    channel.send(tweak, up.setup.data)
    return replace(ots, few_up=up)


def add_up_client(channel: Channel, ots: ClientOts) -> ClientOts:
    if ots.few_up is not None:
        return ots
    offset = garbling.random_delta(ots.prg)
    message, t = ots.few.correlated(offset[0], ot.BASE_OTS)
    channel.send(message.data)
    answer = channel.receive(ot.TWEAK_BYTES + BLOCK_BYTES * _UP_BLOCKS)
    keys = ot.received_pads(t, bytes(answer[: ot.TWEAK_BYTES]))
    setup = _blocks(answer[ot.TWEAK_BYTES :])
    up = ot.OtSender(SOFTSPOKEN_PARAMETER, offset, keys, setup, ots.prg, checked=False)
    return replace(ots, offset=offset, few_up=up)


def choose_server(channel: Channel, ots: ServerOts, made: Extensions) -> ServerOts:
    """Use these extensions from here on. Seeds of silent OT are made once, in directions that are set up."""
    down, up = ots.silent_down, ots.silent_up
    if made.down == "silent" and down is None:
        message = _blocks(channel.receive(BLOCK_BYTES * blocks_down(silent.SHAPE.seeds, random_choices=True)))
        labels = ots.few.correlated(message, silent.SHAPE.seeds, random_choices=True)
        down = silent.SilentSender(
            _name(ots.said, "down"), ots.few, ots.delta, labels.zeros, ots.prg, shape=silent.SHAPE
        )
    if made.up == "silent" and up is None and ots.few_up is not None:
        seeding, _, t = ots.few_up.correlated_random(silent.SHAPE.seeds)
        channel.send(seeding.data)
        up = silent.SilentReceiver(_name(ots.said, "up"), t, checked=True, shape=silent.SHAPE)
    return replace(ots, silent_down=down, silent_up=up, made=made)


def choose_client(channel: Channel, ots: ClientOts, made: Extensions) -> ClientOts:
    down, up = ots.silent_down, ots.silent_up
    if made.down == "silent" and down is None:
        seeding, _, t = ots.few.correlated_random(silent.SHAPE.seeds)
        channel.send(seeding.data)
        down = silent.SilentReceiver(_name(ots.said, "down"), t, checked=False, shape=silent.SHAPE)
    if made.up == "silent" and up is None and ots.few_up is not None:
        message = _blocks(channel.receive(BLOCK_BYTES * blocks_up(silent.SHAPE.seeds)))
        q = ots.few_up.correlated(message, silent.SHAPE.seeds, random_choices=True).zeros
        up = silent.SilentSender(_name(ots.said, "up"), ots.few_up, _set_up(ots.offset), q, ots.prg, shape=silent.SHAPE)
    return replace(ots, silent_down=down, silent_up=up, made=made)


def reserve_server(channel: Channel, ots: ServerOts, needed: OtCount) -> None:
    """Have as many OTs more at hand where they are silent, in a section of their own. Raises InconsistentOtError if the
    client's trees are not what they must be."""
    with channel.section("offline", "ots"):
        if ots.made.down == "silent":
            down = _set_up(ots.silent_down)
            for _ in range(ots.stock.reserve("down", needed.down)):
                channel.send(down.refill().data)
        if ots.made.up == "silent" and needed.up:
            up = _set_up(ots.silent_up)
            for _ in range(ots.stock.reserve("up", needed.up)):
                channel.send(up.refill(_blocks(channel.receive(BLOCK_BYTES * silent.SHAPE.refill_blocks))))
                up.accept(bytes(channel.receive(silent.PROOF_BYTES)))


def reserve_client(channel: Channel, ots: ClientOts, needed: OtCount) -> None:
    with channel.section("offline", "ots"):
        if ots.made.down == "silent":
            down = _set_up(ots.silent_down)
            for _ in range(ots.stock.reserve("down", needed.down)):
                down.refill(_blocks(channel.receive(BLOCK_BYTES * silent.SHAPE.refill_blocks)))
        if ots.made.up == "silent" and needed.up:
            up = _set_up(ots.silent_up)
            for _ in range(ots.stock.reserve("up", needed.up)):
                channel.send(up.refill().data)
                channel.send(up.prove(bytes(channel.receive(silent.MASKED_BYTES))))


def _name(said: bytes, direction: str) -> bytes:
    """Name a silent session, whose public hashes and codes follow from it."""
    person = b"sphynx silent OT"
    return hashlib.blake2b(direction.encode() + said, digest_size=_SESSION_BYTES, person=person).digest()


def _set_up(other: Session | None) -> Session:
    if other is None:
        raise RuntimeError("the OTs of the other direction are needed and were not set up")
    return other


def _blocks(message: bytearray) -> Words:
    return np.frombuffer(message, np.uint64).reshape(-1, 2)
