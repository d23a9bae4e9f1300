"""Silent OT behind the interface of SoftSpoken: the correlation, pads under late tweaks, bytes by formula, refusals."""

from __future__ import annotations

import numpy as np
import pytest

from sphynx.core import Prg, ot, silent
from sphynx.errors import InconsistentOtError
from tests.core.test_ot import bits_of, connected

SMALL = silent.Shape(secret=320, trees=16, depth=6)
SESSION = bytes(range(16))


def connected_silently(*, checked: bool) -> tuple[silent.SilentReceiver, silent.SilentSender, np.ndarray]:
    """Both parties with seeds from a checked SoftSpoken session, not yet refilled."""
    few_received, few_sent, delta = connected(4)
    message, _, t = few_received.correlated_random(SMALL.seeds)
    q = few_sent.correlated(message, SMALL.seeds, random_choices=True).zeros
    receiver = silent.SilentReceiver(SESSION, t, checked=checked, shape=SMALL)
    return receiver, silent.SilentSender(SESSION, few_sent, delta, q, Prg(), shape=SMALL), delta


def refill(receiver: silent.SilentReceiver, sender: silent.SilentSender, *, checked: bool) -> None:
    masked = receiver.refill(sender.refill())
    if checked:
        receiver.accept(sender.prove(masked))


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("checked", [False, True])
def test_ots_of_several_batches(checked: bool) -> None:
    receiver, sender, delta = connected_silently(checked=checked)
    rng = np.random.default_rng(5)
    for count in (1, 130, SMALL.usable - 131, SMALL.usable):
        if receiver.available < count:
            refill(receiver, sender, checked=checked)
        choices = rng.integers(0, 2**64, -(-count // 64), np.uint64)
        message, t = receiver.correlated(choices, count)
        assert message.nbytes == 16 * silent.message_blocks(count, random_choices=False) == 16 * -(-count // 128)
        labels = sender.correlated(message, count, random_choices=False)
        bits = bits_of(choices, count)
        assert (t == labels.zeros ^ (bits[:, None] * delta)).all()
        tweak = labels.late_tweak()
        pads, pair = ot.received_pads(t, tweak), sender.pads(labels.zeros, tweak)
        assert (pads == np.where(bits[:, None] == 1, pair.ones, pair.zeros)).all()
        assert receiver.available == sender.available
    assert sender.available == 0


def test_results_do_not_depend_on_how_many_are_made_at_once() -> None:
    """The code takes 32,768 rows at a time, from wherever an extension begins. Both parties with the same wrong rows
    would still fit each other."""
    shape = silent.Shape(secret=320, trees=1200, depth=6)
    rng = np.random.default_rng(6)
    t, message = (rng.integers(0, 2**64, (count, 2), np.uint64) for count in (shape.seeds, shape.refill_blocks))
    made = []
    for part, threads in ((shape.usable, 1), (shape.usable, 2), (999, 1)):
        receiver = silent.SilentReceiver(SESSION, t, checked=False, shape=shape)
        receiver.refill(message)
        counts = [min(part, shape.usable - first) for first in range(0, shape.usable, part)]
        made.append(np.concatenate([receiver.correlated_random(count, threads=threads)[2] for count in counts]))
    assert shape.usable > 2 << 15
    assert (made[0] == made[1]).all()
    assert (made[0] == made[2]).all()


def test_triples_from_random_choices_take_no_message() -> None:
    receiver, sender, _ = connected_silently(checked=False)
    refill(receiver, sender, checked=False)
    message, choices, t = receiver.correlated_random(256)
    assert message.nbytes == 0
    tweak, pads = sender.late_pads(message, 256, random_choices=True)
    mine, theirs = ot.receiver_triples(choices, ot.received_pads(t, tweak)), ot.sender_triples(pads)
    assert ((mine.a ^ theirs.a) & (mine.b ^ theirs.b) == mine.c ^ theirs.c).all()


def test_both_know_a_tweak_of_their_last_extension_beforehand() -> None:
    receiver, sender, _ = connected_silently(checked=True)
    refill(receiver, sender, checked=True)
    found = []
    for _ in range(2):
        message, choices, t = receiver.correlated_random(128)
        pads = sender.early_pads(message, 128, random_choices=True)
        bits = bits_of(choices, 128)[:, None]
        assert (ot.received_pads(t, receiver.early_tweak()) == np.where(bits == 1, pads.ones, pads.zeros)).all()
        found.append(receiver.early_tweak())
    assert found[0] != found[1]


def test_other_trees_than_the_senders_are_refused() -> None:
    receiver, sender, _ = connected_silently(checked=True)
    message = sender.refill()
    message[5, 1] ^= np.uint64(1)
    masked = receiver.refill(message)
    with pytest.raises(InconsistentOtError, match="refill"):
        receiver.accept(sender.prove(masked))
    assert receiver.available == 0
    with pytest.raises(ValueError, match="not accepted"):
        receiver.refill(message)


def test_nothing_is_used_before_it_is_accepted_or_there() -> None:
    receiver, sender, _ = connected_silently(checked=True)
    with pytest.raises(ValueError, match="refill first"):
        sender.correlated(np.empty((0, 2), np.uint64), 1, random_choices=True)
    masked = receiver.refill(sender.refill())
    with pytest.raises(ValueError, match="refill first"):
        receiver.correlated_random(1)
    receiver.accept(sender.prove(masked))
    receiver.correlated_random(1)
    with pytest.raises(ValueError, match="once"):
        receiver.accept(bytes(silent.PROOF_BYTES))


def test_bytes_for_each_ot_with_the_shape_that_is_used() -> None:
    shape = silent.SHAPE
    trees = 16 * shape.refill_blocks / shape.usable
    assert 16 * shape.refill_blocks == 589_824
    assert trees < 0.3


def test_shapes_whose_batches_do_not_pay_are_refused() -> None:
    with pytest.raises(ValueError, match="not larger than its seeds"):
        _ = silent.Shape(secret=320, trees=4, depth=6).seeds
    with pytest.raises(ValueError, match="ten regions"):
        _ = silent.Shape(secret=325, trees=16, depth=6).seeds
