"""Inference against a client that need not be honest: an honest one gets the oracle's answers."""

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.program.programs import random_inputs, random_weights, several_program
from tests.protocol.parties import run_parties
from tests.protocol.random_programs import Case, random_case, random_public_case

from sphynx.compiler.derive import derive_weights
from sphynx.errors import FailedCheckError, InputError, SphynxError
from sphynx.program.folder import load_program
from sphynx.program.interpret import interpret
from sphynx.protocol import inference_client
from sphynx.protocol.bundle import Bundle, load_bundle
from sphynx.protocol.channel import HEADER_BYTES, Channel, Section, Traffic
from sphynx.protocol.inference_client import InferenceClient
from sphynx.protocol.inference_server import InferenceServer
from sphynx.protocol.linear import ServerModel
from sphynx.protocol.verify.linear_check import HASH_BYTES
from sphynx.protocol.verify.parties import checked_messages
from sphynx.protocol.verify.plan import SECURITY_BITS, plan_check
from sphynx.zoo.shipped import folder_of


def answers(case: Case) -> NDArray[np.int64]:
    check = plan_check(case.program, case.weights)
    assert check.security_bits(case.program) >= SECURITY_BITS
    model, bundle_id = ServerModel(case.program, case.weights, check=check), os.urandom(16)

    def server(channel: Channel) -> None:
        party = InferenceServer(model, channel)
        party.infer(party.prepare(bundle_id, "gc", len(case.pixels)))

    def client(channel: Channel) -> NDArray[np.int64]:
        party = InferenceClient(case.program, channel, check=check)
        return party.infer(party.prepare(bundle_id, "gc", len(case.pixels)), case.pixels)

    return run_parties(server, client, timeout_s=120)[1]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("draw", [random_case, partial(random_public_case, with_gate=False)], ids=["cells", "public"])
def test_honest_clients_get_the_oracles_answers(draw: object, seed: int) -> None:
    case: Case = draw(seed, images=2)  # type: ignore[operator]
    assert np.array_equal(answers(case), interpret(case.program, case.weights, case.pixels))


@pytest.mark.parametrize("bits", [1, 5, 12])
def test_inputs_of_other_widths_are_checked(bits: int) -> None:
    """Several outputs, gathered elements, as many bits of each value as the program declares and one more."""
    program = several_program()
    program = replace(program, input=replace(program.input, bits=bits))
    case = Case(program, random_weights(program, seed=2), random_inputs(program, 2))
    assert np.array_equal(answers(case), interpret(program, case.weights, case.pixels))


def test_a_value_beyond_the_declared_width_is_refused() -> None:
    """The client says the lower bits; an honest one refuses before a bundle is burned."""
    program = several_program()
    narrow = replace(program, input=replace(program.input, bits=4))
    case = Case(narrow, random_weights(narrow, seed=2), random_inputs(narrow, 1) | np.uint8(16))
    with pytest.raises(InputError, match="beyond 15"):
        answers(case)
    with (
        pytest.MonkeyPatch.context() as patch,
        pytest.raises(FailedCheckError, match="labels or pixels"),
    ):
        patch.setattr(inference_client, "require_images", lambda *_: None)
        answers(case)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sphynx-cifar100-25k", "stream-cifar100-25k"])
def test_shipped_networks(name: str) -> None:
    folder = folder_of(name)
    program = load_program(folder / "program")
    pixels = np.random.default_rng(5).integers(0, 256, (1, *program.image), np.uint8)
    case = Case(program, derive_weights(folder, folder / "program", program), pixels)
    assert np.array_equal(answers(case), interpret(program, case.weights, pixels))


@pytest.mark.parametrize("draw", [partial(random_case, with_square=True), random_public_case], ids=["square", "gate"])
def test_other_activations_are_refused(draw: object) -> None:
    case: Case = draw(1)  # type: ignore[operator]
    with pytest.raises(SphynxError, match="not protected against a client that cheats"):
        plan_check(case.program, case.weights)


def test_a_ring_without_room_is_refused() -> None:
    case = random_case(1)
    with pytest.raises(SphynxError, match="no ring is wide enough"):
        plan_check(replace(case.program, ring_bits=48), case.weights)


def test_bytes_are_those_of_the_formula() -> None:
    case = random_case(1)
    check = plan_check(case.program, case.weights)
    model, bundle_id = ServerModel(case.program, case.weights, check=check), os.urandom(16)

    def client(channel: Channel) -> Mapping[Section, Traffic]:
        InferenceClient(case.program, channel, check=check).prepare(bundle_id, "gc")
        return channel.take_record().traffic

    traffic = run_parties(lambda channel: InferenceServer(model, channel).prepare(bundle_id, "gc"), client)[1]
    sizes = list(checked_messages(case.program, check, "gc", images=1))
    requests, products = [size for _, size in sizes[::2]], [size for _, size in sizes[1::2]]
    products.append(products[0])  # the mask of the pixels serves two checks
    assert traffic[Section("offline", "commitments")].sent_bytes == sum(requests) + HEADER_BYTES * len(requests)
    tested = traffic[Section("offline", "check")]
    assert tested.received_bytes == sum(products) + HEADER_BYTES * len(products)
    assert tested.sent_bytes == HASH_BYTES + HEADER_BYTES


def test_another_backend_is_refused_by_both_parties() -> None:
    case = random_case(1)
    check = plan_check(case.program, case.weights)
    model = ServerModel(case.program, case.weights, check=check)

    def refused(party: InferenceServer | InferenceClient) -> None:
        with pytest.raises(InputError, match="needs garbled circuits"):
            party.prepare(os.urandom(16), "gmw")

    run_parties(
        lambda channel: refused(InferenceServer(model, channel)),
        lambda channel: refused(InferenceClient(case.program, channel, check=check)),
    )


def test_a_bundle_of_another_mode_is_refused(tmp_path: Path) -> None:
    case = random_case(1)
    check = plan_check(case.program, case.weights)
    bundle = Bundle(os.urandom(16), case.program.content_hash, "server", "gc", 1, {}, str(check))
    bundle.save(tmp_path / "bundle")
    kept = load_bundle(tmp_path / "bundle")
    kept.check(case.program, "server", str(check))
    for other in ("", str(replace(check, functionals=check.functionals + 1))):
        with pytest.raises(InputError, match="another kind of security"):
            kept.check(case.program, "server", other)
