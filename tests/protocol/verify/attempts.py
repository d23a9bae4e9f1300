"""One attempt of a client at a server that does not trust it: whether it was refused, and what it got.

Base OTs are dealt, which takes most of the time of a set-up and plays no part in these cheats.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.protocol.parties import run_parties
from tests.protocol.verify.cheats import PROGRAM, Cheat

from sphynx.core import Prg, ot
from sphynx.core.bits import bit_values
from sphynx.errors import FailedCheckError, SphynxError
from sphynx.program.interpret import interpret
from sphynx.protocol import ots
from sphynx.protocol.base_ot import FIRST_BYTES, POINT_BYTES
from sphynx.protocol.channel import Channel, Section
from sphynx.protocol.inference_client import InferenceClient
from sphynx.protocol.inference_server import InferenceServer
from sphynx.protocol.linear import ServerModel
from sphynx.protocol.shares import Words

LOGITS = Section("online", PROGRAM.outputs[0].source)


@dataclass(frozen=True)
class Outcome:
    is_refused: bool
    logits_bytes: int  # that the server sent
    answers: list[NDArray[np.int64]] | None
    offset: int | None  # the server's secret, if it is still in use


class _DealtSender:
    def __init__(self, *_: object) -> None:
        self.first_message = os.urandom(FIRST_BYTES)

    def keys(self, _: bytes) -> Words:
        return _dealt(self.first_message)


class _DealtReceiver:
    def __init__(self, choices: Words, count: int, *_: object) -> None:
        self._bits = bit_values(choices)[:count].astype(np.intp)

    def answer(self, first_message: bytes, *_: object) -> tuple[bytes, Words]:
        keys = _dealt(first_message)[np.arange(len(self._bits)), self._bits]
        return bytes(POINT_BYTES * len(self._bits)), np.ascontiguousarray(keys)


def _dealt(seed: bytes) -> Words:
    stream = hashlib.shake_256(seed).digest(32 * ot.BASE_OTS)
    return np.frombuffer(stream, np.uint64).reshape(-1, 2, 2)


def deal_base_ots(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ots, "BaseOtSender", _DealtSender)
    patch.setattr(ots, "BaseOtReceiver", _DealtReceiver)


def picture(batch: int) -> NDArray[np.uint8]:
    return np.arange(7, 7 + batch * PROGRAM.image.size, dtype=np.uint8).reshape(batch, *PROGRAM.image)


def attempt(model: ServerModel, cheat: Cheat, seed: int, prg: Prg | None = None) -> Outcome:
    """Prepare the cheat's bundles as a group and ask with each, until the server refuses. The client's `prg` is one
    that its cheat knows."""
    identifiers = [bytes([number] * 16) for number in range(cheat.bundles)]

    def server(channel: Channel) -> tuple[bool, int, int | None]:
        party, is_refused = InferenceServer(model, channel), False
        try:
            for bundle in party.prepare_group(identifiers, "gc", cheat.batch):
                party.infer(bundle)
        except FailedCheckError:
            is_refused = True
            with pytest.raises(FailedCheckError, match="already failed a check"):
                party.prepare(bytes(16), "gc")
        sent = channel.take_record().traffic.get(LOGITS)
        offset = int.from_bytes(party._session[1].delta.tobytes(), "little") if party._session else None
        return is_refused, sent.sent_bytes if sent else 0, offset

    def client(channel: Channel) -> list[NDArray[np.int64]] | None:
        party = InferenceClient(model.program, channel, prg, check=model.check)
        try:
            bundles = party.prepare_group(identifiers, "gc", cheat.batch)
            return [party.infer(bundle, picture(cheat.batch)) for bundle in bundles]
        except SphynxError:  # the server is gone
            return None

    with pytest.MonkeyPatch.context() as patch:
        deal_base_ots(patch)
        cheat.deceive(patch, np.random.default_rng(seed))
        (is_refused, logits_bytes, offset), answers = run_parties(server, client)
    return Outcome(is_refused, logits_bytes, answers, offset)


def is_honest(model: ServerModel, outcome: Outcome, batch: int = 1) -> bool:
    """Return whether all that the client got is what an honest one gets."""
    expected = interpret(PROGRAM, model.weights, picture(batch))
    return outcome.answers is not None and all(np.array_equal(answer, expected) for answer in outcome.answers)
