"""Every way in which a client may depart from the protocol is refused before any logits are sent.

The cheats change what a client commits to, uploads, returns or asks, and are otherwise as clever as they can be: what
they send is consistent with what they did.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

import numpy as np
import pytest
from tests.program.programs import random_weights
from tests.protocol.parties import run_parties
from tests.protocol.test_cheating_client import PROGRAM

from sphynx.core import garbling
from sphynx.errors import FailedCheckError
from sphynx.program.ir import INPUT, Program
from sphynx.protocol import inference
from sphynx.protocol.channel import Channel
from sphynx.protocol.inference import InferenceClient, InferenceServer
from sphynx.protocol.linear import MaskedTensors, ServerModel, Words
from sphynx.protocol.linear_plan import Upload
from sphynx.protocol.verify import parties
from sphynx.protocol.verify.plan import CheckPlan, plan_check

WEIGHTS = random_weights(PROGRAM, seed=3)
RING_TOP = np.uint64(1 << (PROGRAM.ring_bits - 1))
ONE = np.uint64(1)
TIMES = 4

COMMITTED: dict[str, Callable[[dict[str, list[Words]]], None]] = {
    "share": lambda numbers: _add(numbers["relu"][0], 1, np.uint64(2**18)),
    "sign bit alone": lambda numbers: _flip(numbers["relu"][0], 0, np.uint64(2**19)),
    "highest bit of the ring": lambda numbers: _flip(numbers["relu"][0], 2, RING_TOP),
    "mask of an activation": lambda numbers: _flip(numbers["relu"][1], 0, ONE),
    "mask of a pixel": lambda numbers: _flip(numbers[INPUT][0], 3, ONE),
    "share of the logits": lambda numbers: _flip(numbers["logits"][0], 1, RING_TOP),
}
UPLOADED = {"upload of the pixels": INPUT, "last upload": "relu"}


def _add(words: Words, place: int, by: np.uint64) -> None:
    words[place] += by


def _flip(words: Words, place: int, by: np.uint64) -> None:
    words[place] ^= by


@pytest.fixture(scope="module")
def model() -> ServerModel:
    return ServerModel(PROGRAM, WEIGHTS, check=plan_check(PROGRAM, WEIGHTS))


def refused(model: ServerModel, times: int) -> int:
    """How often a client that prepares and asks is refused; the answer it got otherwise is worthless here."""
    assert model.check is not None

    def server(channel: Channel) -> bool:
        party = InferenceServer(model, channel)
        try:
            party.infer(party.prepare(bytes(16), "gc"))
        except FailedCheckError:
            with pytest.raises(FailedCheckError, match="failed a check before"):
                party.prepare(bytes(16), "gc")  # and is not asked again
            return True
        return False

    def client(channel: Channel) -> None:
        party = InferenceClient(PROGRAM, channel, check=model.check)
        bundle = party.prepare(bytes(16), "gc")
        party.infer(bundle, np.full((1, *PROGRAM.image), 7, np.uint8))

    return sum(_served(server, client) for _ in range(times))


def _served(server: Callable[[Channel], bool], client: Callable[[Channel], None]) -> bool:
    verdict: list[bool] = []

    def judged(channel: Channel) -> None:
        verdict.append(server(channel))

    def asked(channel: Channel) -> bool:
        try:
            client(channel)
        except Exception:  # the server closed the connection
            return False
        return True

    answered = run_parties(judged, asked)[1]
    assert answered != verdict[0]  # no logits reach a client that is refused
    return verdict[0]


def test_an_honest_client_is_not_refused(model: ServerModel) -> None:
    assert refused(model, TIMES) == 0


@pytest.mark.parametrize("cheat", COMMITTED)
def test_wrong_numbers(cheat: str, model: ServerModel, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = parties.committed_numbers

    def changed(program: Program, shares: Mapping[str, Words], masks: Mapping[str, Words]) -> dict[str, list[Words]]:
        numbers = {name: [each.copy() for each in group] for name, group in honest(program, shares, masks).items()}
        COMMITTED[cheat](numbers)
        return numbers

    monkeypatch.setattr(parties, "committed_numbers", changed)
    assert refused(model, TIMES) == TIMES


@pytest.mark.parametrize("cheat", UPLOADED)
def test_wrong_uploads(cheat: str, model: ServerModel, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = MaskedTensors.shifted

    def changed(self: MaskedTensors, upload: Upload) -> Words:
        words = honest(self, upload).copy()
        if upload.tensor == UPLOADED[cheat]:
            words.reshape(-1)[1] += ONE
        return words

    monkeypatch.setattr(MaskedTensors, "shifted", changed)
    assert refused(model, TIMES) == TIMES


@pytest.mark.parametrize("cheat", ["colour", "forged label"])
def test_wrong_labels(cheat: str, model: ServerModel, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = garbling.evaluate

    def changed(*arguments, **options):  # type: ignore[no-untyped-def]
        evaluated = honest(*arguments, **options)
        evaluated.colours[0, 0] ^= ONE
        if cheat == "forged label":
            assert evaluated.halves is not None
            evaluated.halves[0, 0] = np.frombuffer(os.urandom(8), np.uint64)[0]
        return evaluated

    monkeypatch.setattr(garbling, "evaluate", changed)
    assert refused(model, TIMES) == TIMES


@pytest.mark.parametrize("value", [256, 2**19, 2 ** (PROGRAM.ring_bits - 1)])
def test_pixels_out_of_range(value: int, model: ServerModel, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = InferenceClient.infer
    monkeypatch.setattr(inference, "require_images", lambda *_: None)

    def changed(self, bundle, pixels):  # type: ignore[no-untyped-def]
        strange = pixels.astype(np.uint64)
        strange.reshape(-1)[2] = value
        return honest(self, bundle, strange)

    monkeypatch.setattr(InferenceClient, "infer", changed)
    assert refused(model, TIMES) == TIMES


@pytest.mark.slow
def test_few_functionals_pass_at_the_predicted_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    """With K = k + 3 and one functional an error in the ring's highest bit passes one time in 2^4."""
    check = CheckPlan(PROGRAM.ring_bits + 3, 1)
    model = ServerModel(PROGRAM, WEIGHTS, check=check)
    honest = parties.committed_numbers

    def changed(program: Program, shares: Mapping[str, Words], masks: Mapping[str, Words]) -> dict[str, list[Words]]:
        numbers = {name: [each.copy() for each in group] for name, group in honest(program, shares, masks).items()}
        _flip(numbers["relu"][0], 2, RING_TOP)
        return numbers

    monkeypatch.setattr(parties, "committed_numbers", changed)
    times, rate = 200, 2.0**-4
    passed = times - refused(model, times)
    assert abs(passed - times * rate) <= 4 * np.sqrt(times * rate * (1 - rate))
