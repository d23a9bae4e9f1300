"""OT extension in every form, on every path; sizes as DESIGN counts them; wrong buffers raise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sphynx.core import Prg, _native, garbling, ot
from sphynx.core.bits import pack_ring, plane_words, unpack_ring


def connected(k: int, *, checked: bool = True) -> tuple[ot.OtReceiver, ot.OtSender, np.ndarray]:
    """Both parties after ideal base OTs."""
    prg = Prg()
    delta = garbling.random_delta(prg)
    pairs = np.empty((ot.BASE_OTS, 2, 2), np.uint64)
    prg.fill_words(pairs)
    bits = np.unpackbits(delta[0].view(np.uint8), bitorder="little")
    receiver = ot.OtReceiver(k, pairs, prg, checked=checked)
    keys = np.ascontiguousarray(pairs[np.arange(ot.BASE_OTS), bits])
    return receiver, ot.OtSender(k, delta, keys, receiver.setup, prg, checked=checked), delta


def bits_of(words: np.ndarray, count: int) -> np.ndarray:
    return np.unpackbits(words.view(np.uint8), bitorder="little")[:count].astype(np.uint64)


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("k", range(1, 9))
def test_random_ots(k: int, checked: bool) -> None:
    receiver, sender, delta = connected(k, checked=checked)
    for count in (1, 127, 1500):
        message, choices, t = receiver.correlated_random(count)
        assert message.nbytes == (-(-128 // k) - 1) * 16 * (-(-count // 128) + checked) + 48 * checked
        labels = sender.correlated(message, count, random_choices=True)
        bits = bits_of(choices, count)
        assert (t == labels.zeros ^ (bits[:, None] * delta)).all()
        tweak = labels.late_tweak()
        pads, pair = ot.received_pads(t, tweak), sender.pads(labels.zeros, tweak)
        assert (pads == np.where(bits[:, None] == 1, pair.ones, pair.zeros)).all()
        assert (pair.ones != pair.zeros).any(axis=1).all()


def test_extensions_do_not_repeat() -> None:
    receiver, sender, _ = connected(4)
    choices = np.zeros(2, np.uint64)
    first, t_first = receiver.correlated(choices, 128)
    second, t_second = receiver.correlated(choices, 128)
    assert (first != second).any()
    assert not (t_first == t_second).all(axis=1).any()
    sender.correlated(first, 128, random_choices=False)
    assert (sender.correlated(second, 128, random_choices=False).zeros == t_second).all()


def test_late_tweaks_come_with_the_labels_that_they_are_for() -> None:
    """A sender has none to give before, and gives every use another."""
    receiver, sender, _ = connected(4)
    assert not hasattr(sender, "late_tweak")
    message, t = receiver.correlated(np.zeros(2, np.uint64), 128)
    labels = sender.correlated(message, 128, random_choices=False)
    tweaks = [labels.late_tweak(), labels.late_tweak()]
    later = receiver.correlated(np.zeros(2, np.uint64), 128)[0]
    tweaks.append(sender.correlated(later, 128, random_choices=False).late_tweak())
    assert len(set(tweaks)) == 3
    for tweak in tweaks[:2]:  # later extensions change nothing
        pads = sender.pads(labels.zeros.copy(), tweak)
        assert (ot.received_pads(t.copy(), tweak) == pads.zeros).all()


def test_both_know_a_tweak_of_their_last_extension_beforehand() -> None:
    receiver, sender, _ = connected(4)
    found = []
    for _ in range(2):
        message, _ = receiver.correlated(np.zeros(2, np.uint64), 128)
        labels = sender.correlated(message, 128, random_choices=False)
        assert receiver.early_tweak() == labels.early_tweak
        found.append(labels.early_tweak)
    assert found[0] != found[1]


def test_boolean_triples() -> None:
    receiver, sender, _ = connected(4)
    message, choices, t = receiver.correlated_random(2 * 6400)
    tweak, pads = sender.late_pads(message, 2 * 6400, random_choices=True)
    mine = ot.receiver_triples(choices, ot.received_pads(t, tweak))
    theirs = ot.sender_triples(pads)
    a, b, c = mine.a ^ theirs.a, mine.b ^ theirs.b, mine.c ^ theirs.c
    assert a.size == 100
    assert (c == a & b).all()
    for plane in (a, b, mine.a, theirs.a, mine.c, theirs.c):
        assert 2900 < bits_of(plane, 6400).sum() < 3500  # 8 standard deviations around 3200


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize(("count", "length"), [(0, 3), (3, 0), (3, 1), (70, 9), (2000, 49)])
def test_expanded_pads_are_streams_of_each_pad(count: int, length: int) -> None:
    pads = np.empty((count, 2), np.uint64)
    Prg().fill_words(pads)
    found = ot.expanded_pads(pads, length, threads=3)
    assert found.shape == (count, length)
    for pad, words in zip(pads, found, strict=True):
        alone = np.empty(((length + 1) // 2, 2), np.uint64)
        _native.expand_seed(pad.tobytes(), 0, 0, alone)
        assert (alone.reshape(-1)[:length] == words).all()


def test_chosen_strings() -> None:
    receiver, sender, _ = connected(3)
    prg = Prg()
    x0, x1 = np.empty((300, 2), np.uint64), np.empty((300, 2), np.uint64)
    choices = np.empty(plane_words(300), np.uint64)
    for array in (x0, x1, choices):
        prg.fill_words(array)
    request, t = receiver.correlated(choices, 300)
    tweak, pair = sender.late_pads(request, 300, random_choices=False)
    pads = ot.received_pads(t, tweak)
    got = ot.receive_chosen(pads, choices, ot.send_chosen(pair, x0, x1))
    assert (got == np.where(bits_of(choices, 300)[:, None] == 1, x1, x0)).all()


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 64), st.data())
def test_bit_times_ring_element(width: int, data: st.DataObject) -> None:
    top = 2**width - 1
    corners = st.sampled_from([0, min(1, top), top, 2 ** (width - 1), 2 ** (width - 1) - 1])
    values = data.draw(st.lists(corners | st.integers(0, top), min_size=1, max_size=130))
    x, count = np.array(values, np.uint64), len(values)
    receiver, sender, _ = SHARED
    request, choices, t = receiver.correlated_random(count)
    tweak, pair = sender.late_pads(request, count, random_choices=True)
    pads = ot.received_pads(t, tweak)
    message, mine = ot.send_products(pair, x, width)
    assert message.nbytes == (count * width + 7) // 8
    theirs = ot.receive_products(pads, choices, message, width)
    assert ((mine + theirs) & np.uint64(top) == bits_of(choices, count) * x).all()


SHARED = connected(4)


@given(st.integers(1, 64), st.lists(st.integers(0, 2**64 - 1), max_size=80))
def test_packing_round_trip(width: int, numbers: list[int]) -> None:
    values = np.array(numbers, np.uint64)
    packed = pack_ring(values, width)
    assert packed.size == (len(numbers) * width + 7) // 8
    assert (unpack_ring(packed, width, len(numbers)) == values & np.uint64(2**width - 1)).all()


def test_wrong_buffers_raise() -> None:
    receiver, sender, delta = connected(2)
    message, choices, t = receiver.correlated_random(256)
    with pytest.raises(ValueError, match="message"):
        sender.correlated(message[:-1], 256, random_choices=True)
    with pytest.raises(ValueError, match="message"):
        sender.correlated(message, 256, random_choices=False)
    with pytest.raises(ValueError, match="choices"):
        receiver.correlated(np.zeros(3, np.uint64), 256)
    with pytest.raises(TypeError):
        receiver.correlated(np.zeros(4, np.int64), 256)
    with pytest.raises(ValueError, match="lowest bit"):
        ot.OtSender(2, delta & ~np.uint64(1), np.zeros((128, 2), np.uint64), receiver.setup, Prg(), checked=True)
    with pytest.raises(ValueError, match="setup"):
        ot.OtSender(2, delta, np.zeros((128, 2), np.uint64), receiver.setup[1:], Prg(), checked=True)
    with pytest.raises(ValueError, match="1 to 8"):
        ot.OtReceiver(9, np.zeros((128, 2, 2), np.uint64), Prg(), checked=True)
    with pytest.raises(ValueError, match="too many"):
        ot.message_blocks(4, 2**60, random_choices=True, checked=True)
    with pytest.raises(ValueError, match="message"):
        ot.receive_products(ot.received_pads(t, bytes(16)), choices, np.zeros(5, np.uint8), 32)
    with pytest.raises(ValueError, match="tweak must be 16 bytes"):
        ot.received_pads(t, bytes(15))
    with pytest.raises(ValueError, match="bytes"):
        unpack_ring(np.zeros(5, np.uint8), 41, 1)
