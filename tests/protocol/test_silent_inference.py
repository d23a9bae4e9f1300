"""Inference whose OTs are silent, in either direction: exact answers, the bytes of the formulas, seeds once a
connection, and clients that make other trees than they must."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from tests.protocol.parties import run_parties
from tests.protocol.random_programs import Case, random_case, random_public_case
from tests.protocol.relu_runs import connected_ots

from sphynx.core import ot, silent
from sphynx.errors import FailedCheckError, InconsistentOtError
from sphynx.program.backends import Backend
from sphynx.program.cost.ot_messages import BLOCK_BYTES, blocks_down, blocks_up
from sphynx.program.extensions import SILENT, SOFTSPOKEN, Extensions, every_extension
from sphynx.program.interpret import interpret
from sphynx.program.ir import Relu
from sphynx.protocol import arithmetic, gmw_cuts, gmw_material, relu_gc, relu_gmw
from sphynx.protocol.activations import Layers, activation_layers
from sphynx.protocol.channel import HEADER_BYTES, Channel, Record, Section
from sphynx.protocol.gmw_material import offline_messages
from sphynx.protocol.inference_client import InferenceClient
from sphynx.protocol.inference_server import InferenceServer
from sphynx.protocol.linear import ServerModel
from sphynx.protocol.ots import OtCount, reserve_client, reserve_server
from sphynx.protocol.relu_layer import ReluLayer
from sphynx.protocol.verify.parties import count_checked_ots
from sphynx.protocol.verify.plan import plan_check

ALL = sorted(every_extension(), key=str)


def ask(
    case: Case, backend: Backend, groups: Sequence[tuple[int, Extensions]], *, batch: int = 1, checked: bool = False
) -> list[Record]:
    """Prepare these groups on one connection, spend every bundle, compare with the oracle; what the client counted of
    each group."""
    check = plan_check(case.program, case.weights) if checked else None
    model = ServerModel(case.program, case.weights, check=check)
    ids = [[os.urandom(16) for _ in range(count)] for count, _ in groups]

    def server(channel: Channel) -> None:
        party = InferenceServer(model, channel)
        for own, (_, made) in zip(ids, groups, strict=True):
            for bundle in party.prepare_group(own, backend, batch, made):
                party.infer(bundle)

    def client(channel: Channel) -> list[Record]:
        party, records = InferenceClient(case.program, channel, check=check), []
        images = np.arange(len(case.pixels))[:batch]
        for own, (_, made) in zip(ids, groups, strict=True):
            bundles = party.prepare_group(own, backend, batch, made)
            records.append(channel.take_record())
            for number, bundle in enumerate(bundles):
                pixels = case.pixels[(images + number) % len(case.pixels)]
                np.testing.assert_array_equal(
                    party.infer(bundle, pixels), interpret(case.program, case.weights, pixels)
                )
            channel.take_record()
        return records

    return run_parties(server, client, timeout_s=120)[1]


def payload_bytes(records: Sequence[Record], phase: str, layer: str) -> int:
    parts = [part for record in records if (part := record.traffic.get(Section(phase, layer)))]
    return sum(part.bytes - HEADER_BYTES * (part.sent_messages + part.received_messages) for part in parts)


def count_ots(layers: Layers, backend: Backend) -> OtCount:
    total = OtCount()
    for layer in layers.values():
        if isinstance(layer, ReluLayer):
            total += relu_gc.ot_count(layer.shape) if backend == "gc" else gmw_material.ot_count(layer.shape)
        else:
            total += arithmetic.ot_count([layer])
    return total


def refill_bytes(made: Extensions, needed: OtCount) -> int:
    """Count what the first bundle of a connection takes."""
    down, up = (-(-count // silent.SHAPE.usable) for count in (needed.down, needed.up))
    trees = BLOCK_BYTES * silent.SHAPE.refill_blocks
    proof = silent.MASKED_BYTES + silent.PROOF_BYTES
    return down * trees * (made.down == "silent") + up * (trees + proof) * (made.up == "silent")


@pytest.mark.parametrize("made", ALL, ids=str)
@pytest.mark.parametrize(("draw", "backend"), [(random_case, "gmw"), (random_public_case, "gmw"), (random_case, "gc")])
def test_answers_are_the_oracles_and_bytes_those_of_the_formulas(
    draw: Callable[..., Case], backend: Backend, made: Extensions
) -> None:
    case = draw(1, images=2, with_square=True)
    records = ask(case, backend, [(1, made)], batch=2)
    layers = activation_layers(case.program, 2)
    for name, layer in layers.items():
        if not isinstance(layer, ReluLayer):
            sizes = sum(plan.request_bytes(made) + plan.answer_bytes(made) for _, plan in layer.parts)
            sizes += sum(plan.offer_bytes(made) for _, plan in layer.parts if hasattr(plan, "offer_bytes"))
        elif backend == "gc":
            sizes = relu_gc.messages(layer.shape, made).offline_bytes
        else:
            sizes = offline_messages(layer.shape, made).total
        assert payload_bytes(records, "offline", name) == sizes
    assert payload_bytes(records, "offline", "ots") == refill_bytes(made, count_ots(layers, backend))


@pytest.mark.parametrize("made", [SILENT, Extensions("silent", "softspoken")], ids=str)
def test_a_client_that_is_checked_may_ask_for_it(made: Extensions) -> None:
    case = random_case(3, images=2)
    records = ask(case, "gc", [(1, made)], batch=2, checked=True)
    needed = count_checked_ots(case.program, plan_check(case.program, case.weights), 2)
    assert payload_bytes(records, "offline", "ots") == refill_bytes(Extensions("silent"), needed)
    silent_bytes = records[0].total("offline").bytes
    plain = ask(case, "gc", [(1, SOFTSPOKEN)], batch=2, checked=True)
    trees = payload_bytes(records, "offline", "ots")
    assert silent_bytes - trees < plain[0].total("offline").bytes - 3 * needed.down


SMALL = silent.Shape(secret=320, trees=16, depth=6)


def test_layers_of_more_ots_than_are_made_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refills come between the batches of a layer, and between its requests and conversions."""
    monkeypatch.setattr(silent, "SHAPE", SMALL)
    monkeypatch.setattr(gmw_cuts, "CUT", 64)
    monkeypatch.setattr(relu_gmw, "PORTION_OTS", 2 * SMALL.usable)
    case = random_case(1, images=8)
    needed = count_ots(activation_layers(case.program, 8), "gmw")
    assert min(needed.down, needed.up) > 3 * SMALL.usable
    records = ask(case, "gmw", [(1, SILENT), (2, SILENT)], batch=8)
    trees = BLOCK_BYTES * SMALL.refill_blocks
    down, up = (-(-3 * count // SMALL.usable) for count in (needed.down, needed.up))
    proofs = up * (silent.MASKED_BYTES + silent.PROOF_BYTES)
    assert payload_bytes(records, "offline", "ots") == trees * (down + up) + proofs


def test_seeds_are_made_once_and_either_kind_follows_the_other() -> None:
    case = random_case(2, images=3)
    groups = [(2, SOFTSPOKEN), (3, SILENT), (1, SOFTSPOKEN), (2, Extensions("silent", "softspoken")), (2, SILENT)]
    records = ask(case, "gmw", groups)
    assert any(isinstance(step, Relu) for step in case.program.steps)
    seeds = silent.SHAPE.seeds
    seed_bytes = BLOCK_BYTES * (blocks_down(seeds, random_choices=True) + blocks_up(seeds))
    others = ask(case, "gmw", [(1, SOFTSPOKEN)])
    assert payload_bytes(records, "setup", "ots") == seed_bytes + payload_bytes(others, "setup", "ots")
    assert payload_bytes(records, "offline", "ots") == refill_bytes(SILENT, OtCount(1, 1))


def test_refills_follow_each_other_and_no_ot_is_used_twice() -> None:
    """More OTs than three batches hold, in parts that end inside of them."""
    server_ots, client_ots = connected_ots(SILENT)
    part = OtCount(silent.SHAPE.usable // 2 + 1000, silent.SHAPE.usable // 3 + 500)

    def server(channel: Channel) -> tuple[list[ot.Words], list[ot.Words]]:
        down, up = [], []
        for _ in range(4):
            reserve_server(channel, server_ots, part)
            down.append(server_ots.down.correlated(np.empty((0, 2), np.uint64), part.down, random_choices=True).zeros)
            up.append(server_ots.up.correlated_random(part.up)[2])
        return down, up

    def client(channel: Channel) -> tuple[list[ot.Words], list[ot.Words]]:
        down, up = [], []
        for _ in range(4):
            reserve_client(channel, client_ots, part)
            down.append(client_ots.down.correlated_random(part.down)[2])
            up.append(client_ots.up.correlated(np.empty((0, 2), np.uint64), part.up, random_choices=True).zeros)
        return down, up

    (sent_down, got_up), (got_down, sent_up) = run_parties(server, client)
    offset = client_ots.offset
    assert offset is not None
    for q, t, delta in ((sent_down, got_down, server_ots.delta[0]), (sent_up, got_up, offset[0])):
        zeros, labels = np.concatenate(q), np.concatenate(t)
        chosen = labels[:, :1] & np.uint64(1)
        assert ((zeros ^ labels) == (np.uint64(0) - chosen) & delta).all()
        assert 0.49 < chosen.mean() < 0.51
        assert len(np.unique(zeros[:, 1])) == len(zeros)


def _with_other_trees(patch: pytest.MonkeyPatch) -> None:
    """A client that changes one level sum of the trees that it sends."""
    refill = silent.SilentSender.refill

    def refilled(sender: silent.SilentSender, *, threads: int = 0) -> ot.Words:
        message = refill(sender, threads=threads)
        message[7, 0] ^= np.uint64(2)
        return message

    patch.setattr(silent.SilentSender, "refill", refilled)


def test_a_client_with_other_trees_is_refused_and_the_next_session_is_a_new_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The server notices before it uses one of these OTs, and its session ends. The next has another offset and other
    seeds."""
    case, made = random_case(4, images=1), Extensions("softspoken", "silent")
    model, offsets, names = ServerModel(case.program, case.weights), [], []
    bundle_id = bytes(16)
    name = silent.SilentReceiver.__init__

    def named(receiver: silent.SilentReceiver, session: bytes, *arguments: object, **options: object) -> None:
        names.append(session)
        name(receiver, session, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(silent.SilentReceiver, "__init__", named)

    def server(channel: Channel) -> None:
        party = InferenceServer(model, channel)
        before = party._set_up

        def kept(*arguments: object) -> object:
            session = before(*arguments)  # type: ignore[arg-type]
            offsets.append(session[1].delta.tobytes())
            return session

        party._set_up = kept  # type: ignore[assignment]
        with pytest.raises(InconsistentOtError, match="refill"):
            party.prepare(bundle_id, "gmw", 1, made)
        assert not any("node" in section.layer for section in channel.take_record().traffic)
        with pytest.raises(FailedCheckError, match="already failed"):
            party.prepare(bundle_id, "gmw", 1, made)

    def client(channel: Channel) -> None:
        with monkeypatch.context() as patch:
            _with_other_trees(patch)
            with pytest.raises(Exception, match="closed"):
                InferenceClient(case.program, channel).prepare(bundle_id, "gmw", 1, made)

    for _ in range(2):
        run_parties(server, client)
    assert len(set(offsets)) == len(set(names)) == 2
