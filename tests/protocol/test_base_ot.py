"""Base OT end to end into an OT extension, and hostile points."""

from __future__ import annotations

import numpy as np
import pytest
from nacl import bindings as sodium

from sphynx.core import Prg, garbling, ot
from sphynx.core.bits import plane_words
from sphynx.errors import InconsistentOtError, SphynxError
from sphynx.protocol.base_ot import BaseOtReceiver, BaseOtSender

CONTEXT = b"this conversation"
HONEST = BaseOtSender(Prg(), CONTEXT).first_message
TORSION = (  # of order 4, 8 and 2
    bytes(32),
    bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"),
    bytes.fromhex("ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"),
)


def test_receiver_gets_the_key_of_its_choice() -> None:
    choices = np.array([0b1011], np.uint64)
    sender, receiver = BaseOtSender(Prg(), CONTEXT), BaseOtReceiver(choices, 10, Prg())
    answer, chosen = receiver.answer(sender.first_message, CONTEXT)
    assert len(answer) == 320
    pairs = sender.keys(answer)
    for index in range(10):
        bit = int(choices[0]) >> index & 1
        assert (chosen[index] == pairs[index, bit]).all()
        assert (chosen[index] != pairs[index, 1 - bit]).any()


def test_base_ot_starts_an_extension() -> None:
    delta = garbling.random_delta(Prg())
    base_sender, base_receiver = BaseOtSender(Prg(), CONTEXT), BaseOtReceiver(delta[0], ot.BASE_OTS, Prg())
    answer, base_keys = base_receiver.answer(base_sender.first_message, CONTEXT)
    receiver = ot.OtReceiver(4, base_sender.keys(answer), Prg(), checked=True)
    sender = ot.OtSender(4, delta, base_keys, receiver.setup, Prg(), checked=True)
    choices = np.zeros(plane_words(200), np.uint64)
    choices[1] = 0xABCDEF
    message, t = receiver.correlated(choices, 200)
    q = sender.correlated(message, 200, random_choices=False).zeros
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
        *(sodium.crypto_core_ed25519_add(HONEST[:32], torsion) for torsion in TORSION),  # of composite order
    ],
    # Fixed names: the last points are others in every process.
    ids=(
        *("nothing", "short", "of order 4", "the identity", "all ones", "long", "off the curve"),
        *("4 times the order", "8 times the order", "2 times the order"),
    ),
)
def test_bad_points_are_refused(point: bytes) -> None:
    with pytest.raises(SphynxError, match="group element"):
        BaseOtReceiver(np.zeros(1, np.uint64), 1, Prg()).answer(point + HONEST[32:], CONTEXT)
    if point:
        with pytest.raises(SphynxError, match="group element"):
            BaseOtSender(Prg(), CONTEXT).keys(point)


def answer(first_message: bytes, context: bytes = CONTEXT) -> bytes:
    return BaseOtReceiver(np.zeros(1, np.uint64), 1, Prg()).answer(first_message, context)[0]


def test_whoever_does_not_know_the_exponent_gets_no_answer() -> None:
    """Another's point with another's proof, one from another conversation, and every part of a proof changed."""
    assert len(HONEST) == 96 and len(answer(HONEST)) == 32
    other = BaseOtSender(Prg(), CONTEXT).first_message
    refused = [HONEST[:32] + other[32:], other[:32] + HONEST[32:], HONEST[:64] + other[64:], HONEST[:64] + bytes(32)]
    refused += [bytes(byte ^ (at == place) for at, byte in enumerate(HONEST)) for place in (32, 63, 64, 95)]
    for message in refused:
        with pytest.raises(InconsistentOtError, match="set-up"):
            answer(message)
    with pytest.raises(InconsistentOtError, match="set-up"):
        answer(HONEST, b"another conversation")
    forged = sodium.crypto_core_ed25519_sub(HONEST[:32], other[:32])  # whose exponent is known to nobody alone
    with pytest.raises(InconsistentOtError):
        answer(forged + HONEST[32:])


def test_proofs_are_fresh() -> None:
    """Two of one exponent would give it away if their blinding were one: s - s' = (e - e') a."""
    prg = Prg.fixed_seed_for_tests(bytes(16))
    one, other = (BaseOtSender(prg, CONTEXT).first_message for _ in range(2))
    assert not {one[at : at + 32] for at in (0, 32, 64)} & {other[at : at + 32] for at in (0, 32, 64)}
