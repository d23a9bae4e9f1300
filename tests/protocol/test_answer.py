"""Labels in place of scores: exact with either backend and in the checked mode, priced to the byte, and nothing else is
sent."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from tests.program.programs import FOUR_CLASSES, random_inputs, random_weights, small_program
from tests.protocol.parties import run_parties
from tests.protocol.random_programs import Case, random_case, random_public_case
from tests.protocol.verify.attempts import attempt
from tests.protocol.verify.cheats import CHEATS, PROGRAM, WEIGHTS

from sphynx.errors import ConnectionLostError, InputError
from sphynx.program.backends import BACKENDS, Backend
from sphynx.program.cost.answer import answer_cost
from sphynx.program.cost.estimate import estimate
from sphynx.program.cost.link import LINKS
from sphynx.program.cost.ot_messages import BLOCK_BYTES, blocks_down
from sphynx.program.cost.rates import REFERENCE
from sphynx.program.extensions import SILENT, SOFTSPOKEN, Extensions
from sphynx.program.interpret import interpret
from sphynx.program.ir import Linear, Program
from sphynx.program.labels import NOT_SURE, find_labels
from sphynx.program.revealing import revealing_label
from sphynx.protocol import answer
from sphynx.protocol.answer import ANSWER, AnswerLayer
from sphynx.protocol.capacity import bundle_bytes
from sphynx.protocol.channel import HEADER_BYTES, Channel, Record, Section
from sphynx.protocol.inference_client import InferenceClient
from sphynx.protocol.inference_server import InferenceServer
from sphynx.protocol.linear import ServerModel
from sphynx.protocol.verify.plan import plan_check
from sphynx.space.tally import Shape


def labelled(case: Case, margin: int = 0) -> Case:
    """The same case, of which clients get labels."""
    output = case.program.outputs[0]
    size = case.program.shapes[output.source].size
    names = tuple(f"class {number}" for number in range(size))
    labels = replace(output, dims=(size,), final="", class_names=names, reveals="label", margin=margin)
    return Case(replace(case.program, outputs=(labels,)), case.weights, case.pixels)


def expected(case: Case, margin: int = 0) -> list[int]:
    return find_labels(interpret(labelled(case).program, case.weights, case.pixels), margin).tolist()


def ask(
    case: Case, backend: Backend, *, bundles: int = 1, is_checked: bool = False, made: Extensions = SOFTSPOKEN
) -> tuple[list[int], Record, Record]:
    """The labels of a group of bundles, and what the client counted offline and online."""
    program, batch = case.program, len(case.pixels) // bundles
    check = plan_check(program, case.weights) if is_checked else None
    model, ids = ServerModel(program, case.weights, check=check), [os.urandom(16) for _ in range(bundles)]

    def server(channel: Channel) -> None:
        party = InferenceServer(model, channel)
        for bundle in party.prepare_group(ids, backend, batch, made):
            party.infer(bundle)

    def client(channel: Channel) -> tuple[list[int], Record, Record]:
        party, found = InferenceClient(program, channel, check=check), []
        prepared = party.prepare_group(ids, backend, batch, made)
        offline = channel.take_record()
        for number, bundle in enumerate(prepared):
            got = party.infer(bundle, case.pixels[batch * number : batch * (number + 1)])
            assert got.shape == (batch, 1)
            found += got[:, 0].tolist()
        return found, offline, channel.take_record()

    return run_parties(server, client, timeout_s=120)[1]


def middle_lead(case: Case) -> int:
    ordered = np.sort(interpret(labelled(case).program, case.weights, case.pixels), axis=1)
    return int(np.median(ordered[:, -1] - ordered[:, -2]))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("with_margin", [False, True])
@pytest.mark.parametrize("make", [random_case, partial(random_public_case, with_gate=False)], ids=["cells", "public"])
def test_labels_are_the_oracles(make: partial[Case], with_margin: bool, backend: Backend) -> None:
    for seed in range(3):
        case = make(seed, images=5)
        margin = middle_lead(case) if with_margin else 0
        found, _, _ = ask(labelled(case, margin), backend)
        assert found == expected(case, margin)
        assert (NOT_SURE in found) <= with_margin


@pytest.mark.parametrize("with_margin", [False, True])
def test_labels_of_a_client_that_is_checked_are_the_oracles(with_margin: bool) -> None:
    for seed in range(3):
        case = random_public_case(seed, images=3, with_gate=False)
        margin = middle_lead(case) if with_margin else 0
        found, _, _ = ask(labelled(case, margin), "gc", is_checked=True)
        assert found == expected(case, margin)


@pytest.mark.parametrize(("backend", "is_checked"), [("gc", False), ("gmw", False), ("gc", True)])
def test_groups_batches_and_silent_ots(backend: Backend, is_checked: bool) -> None:
    case = random_case(3, images=6)
    for made in (SOFTSPOKEN, SILENT) if backend == "gc" else (SOFTSPOKEN,):
        assert ask(labelled(case), backend, bundles=3, is_checked=is_checked, made=made)[0] == expected(case)


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "is_checked"), [("gc", False), ("gmw", False), ("gc", True)])
def test_a_thousand_labels_are_the_oracles(backend: Backend, is_checked: bool) -> None:
    """Forty networks; every other one has a margin."""
    count = 0
    for seed in range(40):
        case = random_case(seed, images=25)
        margin = middle_lead(case) if seed % 2 else 0
        found, _, _ = ask(labelled(case, margin), backend, is_checked=is_checked)
        assert found == expected(case, margin)
        count += len(found)
    assert count == 1000


def equal_scores() -> Case:
    """All weights of the last layer are zero: its biases alone decide, of which the largest comes twice."""
    program = small_program(ring_bits=44)
    weights = random_weights(program)
    weights = {name: w * 0 if name.startswith("logits/") else w for name, w in weights.items()}
    weights["logits/bias"] = np.array([-3, 8, 2, 8]).reshape(4, 1, 1)
    return Case(program, weights, random_inputs(program, 2))


@pytest.mark.parametrize(("margin", "label"), [(0, 1), (1, NOT_SURE)])
def test_of_equal_scores_the_first_is_the_label(margin: int, label: int) -> None:
    assert ask(labelled(equal_scores(), margin), "gc")[0] == [label] * 2


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("images", "margin"), [(1, 0), (3, 0), (3, 77)])
def test_bytes_are_those_of_the_formula(images: int, margin: int, backend: Backend) -> None:
    case = labelled(random_case(2, images=images), margin)
    cost, name = answer_cost(case.program, images), case.program.outputs[0].source
    _, offline, online = ask(case, backend)
    prepared, told = offline.traffic[Section("offline", ANSWER)], online.traffic[Section("online", name)]
    request = BLOCK_BYTES * blocks_down(cost.ots, random_choices=False)
    assert prepared.sent_bytes == request + HEADER_BYTES
    assert prepared.received_bytes == cost.table_bytes + HEADER_BYTES
    assert (told.sent_bytes, told.received_messages) == (0, cost.messages)  # the server learns nothing
    assert told.received_bytes == cost.online_bytes + HEADER_BYTES * cost.messages
    layer = AnswerLayer.planned(case.program, images)
    assert layer is not None and layer.ands * images == cost.ands and layer.ands == layer.circuit.and_count


@pytest.mark.parametrize("backend", BACKENDS)
def test_estimates_include_the_answers_circuit(backend: Backend) -> None:
    plain = random_case(2, images=1)
    case, cost = labelled(plain, 77), answer_cost(labelled(plain, 77).program)
    counted = ask(case, backend)[2].total("online")
    told = estimate(case.program, REFERENCE, LINKS["lan"], backend, SOFTSPOKEN).total
    assert told.online_bytes == counted.bytes - HEADER_BYTES * (counted.sent_messages + counted.received_messages)
    before = estimate(plain.program, REFERENCE, LINKS["lan"], backend, SOFTSPOKEN).total
    added = cost.table_bytes + REFERENCE.ot_bytes * cost.ots
    assert told.offline_bytes - before.offline_bytes == pytest.approx(added)
    assert told.offline_seconds > before.offline_seconds and told.online_seconds > before.online_seconds
    kept = [bundle_bytes(one.program, backend)[1] for one in (plain, case)]
    assert kept[1] - kept[0] == pytest.approx(cost.table_bytes + 16 * cost.ots)


def test_a_checked_client_commits_to_no_more() -> None:
    """Its OTs are those that it commits to the scores' shares by; tables are added, and labels replace the scores."""
    case = labelled(random_case(2, images=2))
    cost, name = answer_cost(case.program, 2), case.program.outputs[0].source
    _, offline, online = ask(case, "gc", is_checked=True)
    prepared, told = offline.traffic[Section("offline", ANSWER)], online.traffic[Section("online", name)]
    assert (prepared.sent_bytes, prepared.received_bytes) == (0, cost.table_bytes + HEADER_BYTES)
    assert told.received_bytes == cost.online_bytes + HEADER_BYTES * cost.messages


def test_large_batches_come_in_several_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    def one_by_one(images: int, _: int) -> list[range]:
        return [range(number, number + 1) for number in range(images)]

    case = random_case(1, images=3)
    monkeypatch.setattr(answer, "split_images", one_by_one)
    found, offline, _ = ask(labelled(case, 5), "gc")
    assert found == expected(case, 5)
    assert offline.traffic[Section("offline", ANSWER)].received_messages == 3


def checked_program() -> Program:
    return revealing_label(replace(PROGRAM, outputs=FOUR_CLASSES))


@pytest.mark.parametrize("name", CHEATS)
def test_a_client_that_cheats_gets_no_label(name: str) -> None:
    model = ServerModel(checked_program(), WEIGHTS, check=plan_check(checked_program(), WEIGHTS))
    outcome = attempt(model, CHEATS[name], seed=1)
    assert outcome.is_refused
    assert outcome.logits_bytes == 0 and outcome.answers is None


def test_a_bundle_for_scores_is_not_used_for_a_label_and_not_the_other_way_round() -> None:
    case = random_case(1, images=1)
    asked = labelled(case)

    def client(channel: Channel) -> None:
        for made_for, used_for in ((case.program, asked.program), (asked.program, case.program)):
            bundle = InferenceClient(made_for, channel).prepare(bytes(16), "gmw")
            before = channel.record.total().sent_bytes
            with pytest.raises(InputError, match="it was made for the program"):
                InferenceClient(used_for, channel).infer(bundle, case.pixels)
            assert channel.record.total().sent_bytes == before

    def server(channel: Channel) -> None:
        for program in (case.program, asked.program):
            InferenceServer(ServerModel(program, case.weights), channel).prepare(bytes(16), "gmw")

    run_parties(server, client)


def test_a_label_that_is_no_class_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server of a larger circuit than it said, or a broken one: three classes in two bits, made the fourth."""
    program = small_program(ring_bits=44)
    last = program.steps[-1]
    assert isinstance(last, Linear)
    steps = (*program.steps[:-1], replace(last, shape=Shape(3, 1, 1)))
    outputs = (replace(FOUR_CLASSES[0], class_names=("a", "b", "c")),)
    program = revealing_label(replace(program, steps=steps, outputs=outputs))
    weights = {name: w * (not name.startswith("logits/")) for name, w in random_weights(program).items()}
    case = Case(program, weights, random_inputs(program, 1))  # of equal scores, the first is the label
    honest = answer.garble_answer

    def changed(*arguments: object) -> dict[str, np.ndarray]:
        material = honest(*arguments)  # type: ignore[arg-type]
        return {**material, "colours 0": material["colours 0"] ^ np.uint64(1)}

    monkeypatch.setattr("sphynx.protocol.inference_server.garble_answer", changed)
    with pytest.raises(ConnectionLostError, match="none of the classes"):
        ask(case, "gc")
