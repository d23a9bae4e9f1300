"""Bundles prepared as a group: each answers as one alone, bit for bit the oracle; bytes are those of the plan."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
import pytest
from tests.protocol.parties import run_parties
from tests.protocol.random_programs import Case, random_case, random_public_case

from sphynx.program.backends import Backend
from sphynx.program.folder import load_program
from sphynx.program.interpret import interpret
from sphynx.protocol.bundle import Bundle
from sphynx.protocol.channel import HEADER_BYTES, Channel, Record
from sphynx.protocol.inference_client import InferenceClient
from sphynx.protocol.inference_server import InferenceServer
from sphynx.protocol.linear import ServerModel
from sphynx.protocol.linear_plan import ProgramPlan, plan_group, plan_images, plan_program
from sphynx.zoo.shipped import program_path


def he_bytes(plan: ProgramPlan, images: int) -> int:
    uploads = sum(plan.upload_bytes(upload, plan.whole(images)) for upload in plan.distinct_uploads)
    return uploads + sum(plan.reply_bytes(name, plan.whole(images)) for name in plan.convs)


def counted_he_bytes(plan: ProgramPlan, record: Record) -> int:
    sections = {f"{upload.tensor}/mask" for upload in plan.distinct_uploads} | set(plan.convs)
    return sum(
        part.bytes - HEADER_BYTES * (part.sent_messages + part.received_messages)
        for section, part in record.traffic.items()
        if section.phase == "offline" and section.layer in sections
    )


def ask_all(case: Case, backend: Backend, count: int, batch: int) -> None:
    """One group, every bundle spent in another order than it was made, on images of its own."""
    model, ids = ServerModel(case.program, case.weights), [os.urandom(16) for _ in range(count)]
    plan = plan_images(case.program, count * batch)
    order = list(reversed(range(count)))

    def server(channel: Channel) -> list[Bundle]:
        party = InferenceServer(model, channel)
        bundles = party.prepare_group(ids, backend, batch)
        for number in order:
            party.infer(bundles[number])
        return bundles

    def client(channel: Channel) -> tuple[dict[int, np.ndarray], Record]:
        party = InferenceClient(case.program, channel)
        bundles = party.prepare_group(ids, backend, batch)
        record = channel.take_record()
        assert [bundle.bundle_id for bundle in bundles] == ids
        return {n: party.infer(bundles[n], case.pixels[n * batch : (n + 1) * batch]) for n in order}, record

    bundles, (logits, record) = run_parties(server, client)
    expected = interpret(case.program, case.weights, case.pixels)
    for number in order:
        np.testing.assert_array_equal(logits[number], expected[number * batch : (number + 1) * batch])
    assert counted_he_bytes(plan, record) == he_bytes(plan, count * batch)
    first = next(case.program.linears).name
    shares = [bundle.arrays[f"share/{first}"] for bundle in bundles]
    assert len({share.tobytes() for share in shares}) == count  # masked apart, whatever they share
    assert all(share.base is None for share in shares)  # a view would keep the whole group in memory


@pytest.mark.parametrize(("make", "seed", "backend"), [(random_case, 1, "gc"), (random_public_case, 2, "gmw")])
@pytest.mark.parametrize(("count", "batch"), [(2, 1), (9, 1), (3, 6), (20, 1)])
def test_every_bundle_of_a_group_answers_as_the_oracle(
    make: Callable[..., Case], seed: int, backend: Backend, count: int, batch: int
) -> None:
    """Groups of fewer images than share a ciphertext, of more, and of bundles for several images."""
    case = make(seed, images=count * batch)
    assert plan_group(case.program).images == 16
    assert (plan_images(case.program, count * batch) is plan_group(case.program)) == (count * batch >= 8)
    ask_all(case, backend, count, batch)


@pytest.mark.parametrize(
    ("name", "alone", "together"),
    [("stream-cifar100-25k", 16_181_000, 4_394_000), ("sphynx-cifar100-25k", 17_966_000, 5_190_000)],
)
def test_what_a_group_saves(name: str, alone: int, together: int) -> None:
    """Bytes of ciphertexts for each image, as docs/rlwe.md has them."""
    program = load_program(program_path(name))
    group = plan_group(program)
    assert group.images == 16 and group.params is plan_program(program).params
    assert he_bytes(plan_program(program), 1) == pytest.approx(alone, rel=1e-3)
    assert he_bytes(group, 16) / 16 == pytest.approx(together, rel=1e-3)
    assert he_bytes(group, 8) < 8 * he_bytes(plan_program(program), 1)  # half a group is worth it


@pytest.mark.parametrize("count", [1, 9])
def test_plans_may_be_forgotten_between_two_groups(count: int) -> None:
    """A process that plans other programs meanwhile keeps no plan of this one: it makes an equal one again."""
    case = random_case(1, images=count)
    model, ids = ServerModel(case.program, case.weights), [os.urandom(16) for _ in range(2 * count)]
    groups = ids[:count], ids[count:]

    def server(channel: Channel) -> None:
        party = InferenceServer(model, channel)
        for group in groups:
            party.prepare_group(group, "gc")
            channel.receive(1)

    def client(channel: Channel) -> None:
        party = InferenceClient(case.program, channel)
        for group in groups:
            party.prepare_group(group, "gc")
            plan_program.cache_clear()
            plan_group.cache_clear()
            channel.send(b".")

    run_parties(server, client)
