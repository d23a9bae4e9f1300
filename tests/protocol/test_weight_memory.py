"""Prepared weights beyond a memory bound are transformed when they are needed: results are the same, bit for bit."""

import os
from collections.abc import Callable

import numpy as np
import pytest
from tests.protocol.parties import run_parties
from tests.protocol.random_programs import Case, random_case, random_public_case

from sphynx.core import rlwe
from sphynx.program.interpret import interpret
from sphynx.protocol.channel import Channel
from sphynx.protocol.inference_client import InferenceClient
from sphynx.protocol.inference_server import InferenceServer
from sphynx.protocol.linear import ServerModel


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("make", [random_case, random_public_case])
def test_results_are_the_oracles_in_any_memory(
    make: Callable[[int, int], Case], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one product at a time, so that a map's replies come from several blocks."""
    monkeypatch.setattr(rlwe, "PASSING_POLYNOMIALS", 1)
    case = make(seed, 2)
    whole = ServerModel(case.program, case.weights)
    for memory_bytes in (0, whole.prepared_bytes // 2):
        model, bundle_id = ServerModel(case.program, case.weights, memory_bytes=memory_bytes), os.urandom(16)
        assert model.prepared_bytes <= memory_bytes

        def server(channel: Channel, model: ServerModel = model, bundle_id: bytes = bundle_id) -> None:
            party = InferenceServer(model, channel)
            party.infer(party.prepare(bundle_id, "gmw", 2))

        def client(channel: Channel, bundle_id: bytes = bundle_id) -> np.ndarray:
            party = InferenceClient(case.program, channel)
            return party.infer(party.prepare(bundle_id, "gmw", 2), case.pixels)

        _, logits = run_parties(server, client)
        np.testing.assert_array_equal(logits, interpret(case.program, case.weights, case.pixels))


def test_what_is_held_is_what_fits() -> None:
    case = random_case(1, 1)
    whole = ServerModel(case.program, case.weights)
    sizes = [rlwe.prepared_bytes(whole.plan.params, conv) for conv in whole.plan.convs.values()]
    assert sizes == [prepared.bytes for prepared in whole.prepared]
    tight = ServerModel(case.program, case.weights, memory_bytes=sizes[0])
    assert [prepared.bytes for prepared in tight.prepared] == [sizes[0]] + [0] * (len(sizes) - 1)
