"""Prepared weights beyond a memory bound are transformed when they are needed: results are the same, bit for bit."""

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest
from tests.protocol.parties import run_parties
from tests.protocol.random_programs import Case, random_case, random_public_case

from sphynx.core import rlwe
from sphynx.errors import SphynxError
from sphynx.program.cost.rates import REFERENCE
from sphynx.program.interpret import interpret
from sphynx.protocol.channel import Channel, local_pair
from sphynx.protocol.inference_client import InferenceClient
from sphynx.protocol.inference_server import InferenceServer
from sphynx.protocol.linear import ServerModel
from sphynx.protocol.linear_plan import plan_group, plan_images, plan_program
from sphynx.protocol.planned_he import planned_he
from sphynx.protocol.shared_weights import read_shared, write_shared
from sphynx.protocol.weight_memory import WeightMemory

GROUP = 16
WAIT_S = 60.0


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


class _Pair:
    """Both parties of a program, on one connection, whose bundles all have to answer as the oracle."""

    def __init__(self, case: Case, memory_bytes: int) -> None:
        self.case, self.limit_bytes = case, memory_bytes
        self.model = ServerModel(case.program, case.weights, memory_bytes=memory_bytes)
        ends = local_pair(timeout_s=60.0)
        self._server, self._client = InferenceServer(self.model, ends[0]), InferenceClient(case.program, ends[1])
        self._expected = interpret(case.program, case.weights, case.pixels)

    def ask(self, bundles: int) -> None:
        ids = [os.urandom(16) for _ in range(bundles)]
        with ThreadPoolExecutor(1) as pool:
            served = pool.submit(self._server.prepare_group, ids, "gmw", 1)
            own, theirs = self._client.prepare_group(ids, "gmw", 1), served.result()
            assert self.model.prepared_bytes <= self.limit_bytes
            answered = pool.submit(self._server.infer, theirs[-1])
            answer = self._client.infer(own[-1], self.case.pixels[:1])
            answered.result()
        np.testing.assert_array_equal(answer, self._expected[:1])

    def held(self, bundles: int) -> list[bool]:
        """Which maps of those that are used for so many."""
        return [conv.is_held for conv in self.model.maps_for(bundles).convs.values()]

    def values(self, bundles: int) -> list[int]:
        """Which prepared weights are in memory, by identity."""
        return [id(part.weights) for conv in self.model.maps_for(bundles).convs.values() for part in conv.parts()]


@pytest.fixture
def pair() -> _Pair:
    """With memory for either set of weights, and not for both."""
    case = random_case(1, 1)
    alone, together = plan_program(case.program), plan_group(case.program)
    assert not set(alone.convs.values()) & set(together.convs.values()) and together.images == GROUP
    sizes = [sum(rlwe.prepared_bytes(p.params, conv) for conv in p.convs.values()) for p in (alone, together)]
    return _Pair(case, max(sizes))


def test_weights_of_groups_are_held_in_place_of_the_others_when_groups_are_asked_for(pair: _Pair) -> None:
    assert all(pair.held(1))
    pair.ask(GROUP)
    assert all(pair.held(GROUP)) and not all(pair.held(1))
    before = pair.values(GROUP)
    pair.ask(GROUP)
    assert pair.values(GROUP) == before  # nothing was transformed again
    for _ in range(8):
        pair.ask(1)
    assert all(pair.held(1)) and not all(pair.held(GROUP))


def test_both_in_turn_do_not_drop_each_others_weights(pair: _Pair) -> None:
    for _ in range(3):
        pair.ask(1)
    before = pair.values(1)
    for _ in range(4):
        pair.ask(GROUP)
        pair.ask(1)
        pair.ask(1)
    assert pair.values(1) == before


def test_nobody_waits_for_another_threads_transformation(pair: _Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, may_end = threading.Event(), threading.Event()
    maps = pair.model.maps_for(1)
    name, conv = next(iter(maps.convs.items()))
    conv.drop()
    transform = conv.hold

    def transform_later() -> None:
        begun.set()
        assert may_end.wait(WAIT_S)
        transform()

    monkeypatch.setattr(conv, "hold", transform_later)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(pair.model.conv_to_use, maps, name)
        try:
            assert begun.wait(WAIT_S)
            assert pool.submit(pair.model.maps_to_use, 1).result(WAIT_S) is maps
            assert not pool.submit(pair.model.conv_to_use, maps, name).result(WAIT_S).is_held
        finally:
            may_end.set()
        assert first.result(WAIT_S).is_held


def test_what_another_thread_has_just_held_drops_nothing(pair: _Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    alone, together = ([*pair.model.maps_for(bundles).convs.values()] for bundles in (1, GROUP))
    wanted = next(conv for conv in together if not conv.is_held)
    size = rlwe.prepared_bytes(pair.model.plan.params, wanted.plan)
    memory = WeightMemory(pair.model.prepared_bytes + size)
    memory.ask("together")

    def acquire(*, blocking: bool) -> bool:
        wanted.hold()  # by the other thread, before this one has the lock
        return not blocking

    lock = Mock(acquire=acquire)
    monkeypatch.setattr(memory, "_changing", lock)
    before = [conv.is_held for conv in alone]
    memory.hold("together", wanted, size, {"alone": alone, "together": together})
    assert wanted.is_held and [conv.is_held for conv in alone] == before
    lock.release.assert_called_once()


def test_weights_that_have_moved_are_refused_by_who_shares_them(pair: _Pair) -> None:
    """Whoever reads them takes those that fit first."""

    def read(memory_bytes: int) -> ServerModel:
        shared = write_shared(pair.model, pair.case.weights)
        try:
            return read_shared(shared, pair.case.program, pair.case.weights, memory_bytes=memory_bytes)
        finally:
            os.close(shared)

    assert read(pair.limit_bytes).prepared_bytes == pair.model.prepared_bytes
    with pytest.raises(SphynxError, match="in other memory"):
        read(pair.limit_bytes // 2)
    pair.ask(GROUP)
    with pytest.raises(SphynxError, match="in other memory"):
        read(pair.limit_bytes)


@pytest.mark.parametrize("bundles", [1, GROUP])
def test_what_is_not_held_is_priced(pair: _Pair, bundles: int) -> None:
    """In polynomials of the ring's degree, for each bundle."""
    plan = plan_images(pair.case.program, bundles)
    limit_bytes = sum(rlwe.prepared_bytes(plan.params, conv) for conv in plan.convs.values()) // 2
    tight = _Pair(pair.case, limit_bytes)
    tight.ask(bundles)
    maps = tight.model.maps_for(bundles)
    params, convs = maps.plan.params, maps.convs.values()
    each = 4 * params.n * len(params.primes)
    missing = sum(rlwe.prepared_bytes(params, conv.plan) for conv in convs if not conv.is_held)
    planned = planned_he(pair.case.program, bundles, limit_bytes).values()
    assert missing > 0
    assert sum(work.transforms for work in planned) == pytest.approx(missing / each / bundles)
    assert not any(work.transforms for work in planned_he(pair.case.program, bundles).values())
    slow = replace(REFERENCE.he_small, transform=1.0)
    work_s = sum(work.seconds(slow) - work.seconds(REFERENCE.he_small) for work in planned)
    assert work_s == pytest.approx(missing / each / bundles)


def test_what_is_held_is_what_fits() -> None:
    case = random_case(1, 1)
    whole = ServerModel(case.program, case.weights)
    sizes = [rlwe.prepared_bytes(whole.plan.params, conv) for conv in whole.plan.convs.values()]
    assert sizes == [prepared.bytes for prepared in whole.prepared]
    tight = ServerModel(case.program, case.weights, memory_bytes=sizes[0])
    assert [prepared.bytes for prepared in tight.prepared] == [sizes[0]] + [0] * (len(sizes) - 1)
