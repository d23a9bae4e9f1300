"""Whatever a server hashes with labels that its client had a hand in, it hashes with tweaks drawn after they were
fixed and checked."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from tests.protocol.flipping_receiver import flipping
from tests.protocol.parties import run_parties
from tests.protocol.verify.attempts import attempt, deal_base_ots
from tests.protocol.verify.cheats import PROGRAM, WEIGHTS, Cheat

from sphynx.core import garbling, ot
from sphynx.errors import InconsistentOtError
from sphynx.protocol.channel import Channel
from sphynx.protocol.inference_client import InferenceClient
from sphynx.protocol.inference_server import InferenceServer
from sphynx.protocol.linear import ServerModel
from sphynx.protocol.verify.plan import commitments, plan_check

CHECK = plan_check(PROGRAM, WEIGHTS)
MODEL = ServerModel(PROGRAM, WEIGHTS, check=CHECK)


def record_tweaks(patch: pytest.MonkeyPatch) -> tuple[list[bytes], list[bytes]]:
    """Record, at the server, the tweaks that fixed labels gave and those that anything was hashed with."""
    given: list[bytes] = []
    used: list[bytes] = []
    late_tweak, pads, garble = ot.FixedLabels.late_tweak, ot.OtSender.pads, garbling.garble

    def drawing(labels: ot.FixedLabels) -> bytes:
        given.append(late_tweak(labels))
        return given[-1]

    def hashing(sender: ot.OtSender, q: ot.Words, tweak: bytes, **options: Any) -> ot.PadPair:
        used.append(tweak)
        return pads(sender, q, tweak, **options)

    def garbling_with(circuit: garbling.Circuit, tweak: bytes, *arguments: Any, **options: Any) -> garbling.Garbled:
        used.append(tweak)
        return garble(circuit, tweak, *arguments, **options)

    patch.setattr(ot.FixedLabels, "late_tweak", drawing)
    patch.setattr(ot.OtSender, "pads", hashing)
    patch.setattr(garbling, "garble", garbling_with)
    return given, used


def test_no_tweak_is_drawn_elsewhere() -> None:
    with pytest.MonkeyPatch.context() as patch:
        given, used = record_tweaks(patch)
        assert not attempt(MODEL, Cheat(lambda *_: None), 0).is_refused
    assert set(used) == set(given) and len(set(given)) == len(given) >= len(commitments(PROGRAM, CHECK, 1))


@pytest.mark.parametrize("changed", range(len(commitments(PROGRAM, CHECK, 1)) + 1))
def test_none_is_drawn_before_all_extensions_are_checked(changed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them in turn has other choices in one tree: those of the commitments, and that of the pixels' bits."""
    deal_base_ots(monkeypatch)
    flipping(monkeypatch, start=changed, tree=1 + changed, flips={0: 0})
    given, used = record_tweaks(monkeypatch)

    def server(channel: Channel) -> None:
        with pytest.raises(InconsistentOtError, match="extension"):
            InferenceServer(MODEL, channel).prepare(bytes(16), "gc")

    def client(channel: Channel) -> None:
        with pytest.raises(Exception, match="closed"):
            InferenceClient(PROGRAM, channel, check=CHECK).prepare(bytes(16), "gc")

    run_parties(server, partial(client))
    assert not given and not used
