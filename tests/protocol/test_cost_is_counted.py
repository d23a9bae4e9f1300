"""The costs that program.cost predicts are those that the channel of two real parties counts, frame headers apart."""

import os
from collections.abc import Callable

import pytest
from tests.protocol.parties import run_parties
from tests.protocol.random_programs import Case, random_case, random_public_case

from sphynx.program.backends import Backend
from sphynx.program.cost.cost import activation_costs, packed_bytes
from sphynx.program.cost.estimate import estimate
from sphynx.program.cost.link import LINKS
from sphynx.program.cost.rates import REFERENCE
from sphynx.program.extensions import SOFTSPOKEN
from sphynx.program.ir import INPUT
from sphynx.protocol.channel import HEADER_BYTES, Channel, Record, Traffic
from sphynx.protocol.inference_client import InferenceClient
from sphynx.protocol.inference_server import InferenceServer
from sphynx.protocol.linear import ServerModel
from sphynx.protocol.planned_he import group_size, planned_he


def payload_bytes(traffic: Traffic) -> int:
    return traffic.bytes - HEADER_BYTES * (traffic.sent_messages + traffic.received_messages)


@pytest.mark.parametrize("backend", ["gc", "gmw"])
@pytest.mark.parametrize("with_square", [False, True])
@pytest.mark.parametrize(("seed", "batch"), [(1, 1), (2, 1), (1, 3)])
@pytest.mark.parametrize("make", [random_case, random_public_case])
def test_online_bytes_and_messages_are_exact(
    make: Callable[..., Case], seed: int, batch: int, with_square: bool, backend: Backend
) -> None:
    case = make(seed, images=batch, with_square=with_square)
    program = case.program
    model, bundle_id = ServerModel(program, case.weights), os.urandom(16)

    def server(channel: Channel) -> None:
        party = InferenceServer(model, channel)
        party.infer(party.prepare(bundle_id, backend, batch))

    def client(channel: Channel) -> Record:
        party = InferenceClient(program, channel)
        party.infer(party.prepare(bundle_id, backend, batch), case.pixels)
        return channel.take_record()

    _, record = run_parties(server, client)
    counted = {(section.phase, section.layer): payload_bytes(part) for section, part in record.traffic.items()}
    messages = {
        (section.phase, section.layer): part.sent_messages + part.received_messages
        for section, part in record.traffic.items()
    }
    costs = dict(activation_costs(program, batch))
    for name, cost in costs.items():
        relu_bytes = cost.gc_online_bytes if backend == "gc" else cost.gmw_online_bytes
        others = cost.square_online_bytes + cost.truncation_online_bytes + cost.gate_online_bytes
        assert counted["online", name] == relu_bytes + others
        relu_messages = cost.gc_messages if backend == "gc" else cost.gmw_messages
        others = cost.square_messages + cost.truncation_messages + cost.gate_messages
        assert messages["online", name] == relu_messages + others
    assert counted["online", INPUT] == packed_bytes(batch * program.image.size, program.ring_bits)
    if batch == 1:
        found = estimate(program, REFERENCE, LINKS["lan"], backend).total
        assert found.online_bytes == payload_bytes(record.total("online"))


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_planned_homomorphic_bytes_are_exact_alone_and_in_groups(seed: int, together: bool) -> None:
    case = random_case(seed)
    program = case.program
    bundles = group_size(program) if together else 1
    model, ids = ServerModel(program, case.weights), [os.urandom(16) for _ in range(bundles)]

    def client(channel: Channel) -> Record:
        InferenceClient(program, channel).prepare_group(ids, "gmw", 1, SOFTSPOKEN)
        return channel.take_record()

    def server(channel: Channel) -> None:
        InferenceServer(model, channel).prepare_group(ids, "gmw", 1, SOFTSPOKEN)

    _, record = run_parties(server, client)
    counted = {section.layer: payload_bytes(part) for section, part in record.traffic.items()}
    planned = planned_he(program, bundles)
    for name, work in planned.items():
        assert counted[name] == work.reply_bytes * bundles
    masks = sum(size for name, size in counted.items() if name.endswith("/mask"))
    assert masks == sum(work.upload_bytes for work in planned.values()) * bundles
    found = estimate(program, REFERENCE, LINKS["lan"], "gmw", SOFTSPOKEN, planned=planned, bundles=bundles).total
    assert found.offline_bytes * bundles == pytest.approx(payload_bytes(record.total("offline")), rel=0.1)
