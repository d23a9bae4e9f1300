"""A client that chooses the roots of its OT trees, every message well-formed, against late and early tweaks.

It makes sigma(t_i xor t_j) the difference of two tweaks, so that two hashes of what it must not know have the same AES
input. Where it knows the tweaks beforehand it succeeds: the fixture `early` puts the old order back.
Where the server draws them after its message it does not.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.program.programs import random_weights
from tests.protocol.grinding_receiver import GrindingReceiver, before_sigma, early_tweak
from tests.protocol.own_receiver import times
from tests.protocol.parties import run_parties
from tests.protocol.test_cheating_client import NEURONS, PROGRAM

from sphynx.core import Prg, garbling, ot
from sphynx.protocol.channel import Channel
from sphynx.protocol.inference_client import InferenceClient
from sphynx.protocol.inference_server import InferenceServer
from sphynx.protocol.linear import ServerModel

Words = NDArray[np.uint64]


@pytest.fixture
def early(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Makes senders take tweaks that were known before the receiver's message: as it was."""
    return lambda: monkeypatch.setattr(ot.FixedLabels, "late_tweak", lambda labels: labels.early_tweak)


def unchosen_pads_are_predicted() -> bool:
    """Return whether the sum of two pads that the receiver did not choose is the tweaks' difference."""
    prg, pair = Prg(), (3, 200)
    delta = garbling.random_delta(prg)
    pairs = np.empty((ot.BASE_OTS, 2, 2), np.uint64)
    prg.fill_words(pairs)
    receiver = GrindingReceiver(
        pairs, 0, pair, lambda session: before_sigma(times(pair[0] ^ pair[1], early_tweak(session, 1)))
    )
    bits = np.unpackbits(delta[0].view(np.uint8), bitorder="little")
    keys = np.ascontiguousarray(pairs[np.arange(ot.BASE_OTS), bits])
    sender = ot.OtSender(4, delta, keys, receiver.setup, prg, checked=True)
    message, t = receiver.correlated(np.zeros(4, np.uint64), 256)
    tweak, pads = sender.late_pads(message, 256, random_choices=False)
    assert (ot.received_pads(t.copy(), tweak) == pads.zeros).all()  # an honest run as far as anybody sees
    predicted = t[pair[0]] ^ t[pair[1]]
    found = pads.ones[pair[0]] ^ pads.ones[pair[1]]
    return bool((found == [predicted[1], predicted[0] ^ predicted[1]]).all())


def test_pads_with_early_tweaks_are_predicted(early: Callable[[], None]) -> None:
    early()
    assert unchosen_pads_are_predicted()


def test_pads_with_late_tweaks_are_not_predicted() -> None:
    assert not unchosen_pads_are_predicted()


def shown_by_the_tables(monkeypatch: pytest.MonkeyPatch) -> tuple[bool, bool]:
    """Return whether a row's difference between instances, and that of the labels sent online, gives the offset or 0.

    The row is H(B0) + H(B1) + A0 with the client's wire B. If the hashes of both instances are equal, A0 xor A0' is
    left, and the labels that come online are A0 and A0', each plus the offset where the server's bit is 1.
    """
    model = ServerModel(PROGRAM, random_weights(PROGRAM, seed=3))
    online: list[Words] = []

    def server(channel: Channel) -> Words:
        party = InferenceServer(model, channel)
        bundle = party.prepare(bytes(16), "gc")
        party.infer(bundle)
        return next(value for name, value in bundle.arrays.items() if name.endswith("delta")).reshape(2)

    def client(channel: Channel) -> Words:
        party = InferenceClient(PROGRAM, channel)
        bundle = party.prepare(bytes(16), "gc")
        party.infer(bundle, np.full((1, 1, 2, 2), 7, np.uint8))
        return next(value for name, value in bundle.arrays.items() if name.endswith("tables 0"))

    def evaluate(
        circuit: garbling.Circuit, tweak: bytes, labels: Words, tables: Words, *, first_instance: int, with_halves: bool
    ) -> garbling.Evaluated:
        online.append(labels.copy())
        return honest_evaluate(circuit, tweak, labels, tables, first_instance=first_instance, with_halves=with_halves)

    def receiver(k: int, pairs: Words, prg: Prg, *, checked: bool) -> object:
        """The client's is the first that is made: the server's waits for the client's set-up."""
        if made:
            return honest_receiver(k, pairs, prg, checked=checked)
        made.append(GrindingReceiver(pairs, 0, (0, 1), lambda s: before_sigma(times(2, early_tweak(s, 1)))))
        return made[0]

    made: list[GrindingReceiver] = []
    honest_receiver, honest_evaluate = ot.OtReceiver, garbling.evaluate
    with monkeypatch.context() as changed:
        changed.setattr(ot, "OtReceiver", receiver)
        changed.setattr(garbling, "evaluate", evaluate)
        delta, tables = run_parties(server, client)
    assert made[0].tried < 3000
    rows = tables.reshape(-1, NEURONS, 2)
    sums = rows[:, 0] ^ rows[:, 1] ^ online[0][0, 0] ^ online[0][0, 1]
    return bool((sums == delta).all(axis=1).any()), bool((sums == 0).all(axis=1).any())


def test_tables_with_early_tweaks_show_the_offset(early: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """In each inference whether two bits of the server's are equal, and if they are not, the offset."""
    early()
    for _ in range(40):
        offset, zero = shown_by_the_tables(monkeypatch)
        assert offset or zero
        if offset:
            return
    pytest.fail("the attack does not bite any more")


def test_tables_with_late_tweaks_show_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not any(any(shown_by_the_tables(monkeypatch)) for _ in range(2))
