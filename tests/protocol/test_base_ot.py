"""Base OT end to end into an OT extension, and hostile points."""

from __future__ import annotations

import numpy as np
import pytest
from nacl import bindings as sodium

from sphynx.core import Prg, garbling, ot
from sphynx.core.bits import plane_words
from sphynx.errors import SphynxError
from sphynx.protocol.base_ot import BaseOtReceiver, BaseOtSender


def test_receiver_gets_the_key_of_its_choice() -> None:
    choices = np.array([0b1011], np.uint64)
    sender, receiver = BaseOtSender(Prg()), BaseOtReceiver(choices, 10, Prg())
    answer, chosen = receiver.answer(sender.first_message)
    assert len(answer) == 320
    pairs = sender.keys(answer)
    for index in range(10):
        bit = int(choices[0]) >> index & 1
        assert (chosen[index] == pairs[index, bit]).all()
        assert (chosen[index] != pairs[index, 1 - bit]).any()


def test_base_ot_starts_an_extension() -> None:
    delta = garbling.random_delta(Prg())
    base_sender, base_receiver = BaseOtSender(Prg()), BaseOtReceiver(delta[0], ot.BASE_OTS, Prg())
    answer, base_keys = base_receiver.answer(base_sender.first_message)
    receiver = ot.OtReceiver(4, base_sender.keys(answer), Prg(), checked=True)
    sender = ot.OtSender(4, delta, base_keys, receiver.setup, Prg(), checked=True)
    choices = np.zeros(plane_words(200), np.uint64)
    choices[1] = 0xABCDEF
    message, t = receiver.correlated(choices, 200)
    q = sender.correlated(message, 200, random_choices=False)
    bits = np.unpackbits(choices.view(np.uint8), bitorder="little")[:200].astype(np.uint64)
    assert (t == q ^ (bits[:, None] * delta)).all()


@pytest.mark.parametrize(
    "point",
    [
        b"",
        bytes(31),
        bytes(32),  # of order 4
        b"\x01" + bytes(31),  # the identity
        b"\xff" * 32,
        bytes(33),
        b"\x02" + bytes(31),  # not on the curve
        sodium.crypto_core_ed25519_add(BaseOtSender(Prg()).first_message, bytes(32)),  # of composite order
    ],
    # Fixed names: the last point is another one in every process.
    ids=("nothing", "short", "of order 4", "the identity", "all ones", "long", "off the curve", "of composite order"),
)
def test_bad_points_are_refused(point: bytes) -> None:
    with pytest.raises(SphynxError, match="group element"):
        BaseOtReceiver(np.zeros(1, np.uint64), 1, Prg()).answer(point)
    if point:
        with pytest.raises(SphynxError, match="group element"):
            BaseOtSender(Prg()).keys(point)
