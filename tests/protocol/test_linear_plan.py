"""The public plan: complete, in an order that works, and never more expensive than each map planned by itself."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.protocol.random_programs import random_case

from sphynx.core import Prg, rlwe
from sphynx.core.packing_plan import answer_seconds, upload_seconds
from sphynx.program.cost.cost import conv_shape
from sphynx.program.ir import INPUT, Linear, Program, Relu, Term
from sphynx.protocol.linear_plan import ProgramPlan, Upload, plan_program
from sphynx.space.tally import Shape


def seconds(plan: ProgramPlan) -> float:
    ciphertexts = sum(upload.layout.ciphertexts for upload in plan.distinct_uploads)
    answers = sum(answer_seconds(conv, plan.params.reply_bytes(0)) for conv in plan.convs.values())
    return answers + upload_seconds(ciphertexts, plan.params.upload_bytes)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_every_map_is_answered_after_its_uploads(seed: int) -> None:
    program = random_case(seed).program
    plan = plan_program(program)
    seen: set[Upload | str] = set()
    for item in plan.schedule:
        assert item not in seen
        if isinstance(item, str):
            assert seen.issuperset(plan.uploads[item])
        elif item not in plan.drawn:
            assert item.tensor.removesuffix("/pool") in seen  # the reply that tells the client its share
        seen.add(item)
    assert {step.name for step in program.linears} <= seen
    for step in program.linears:
        expected = [(term.source, term.shift) for term in step.terms]
        assert [(upload.tensor, upload.shift) for upload in plan.uploads[step.name]] == expected


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_sharing_never_costs_more(seed: int) -> None:
    program = random_case(seed).program
    plan = plan_program(program)
    alone = 0.0
    for step in program.linears:
        shapes = (conv_shape(term, program.shapes[term.source], step.shape) for term in step.terms)
        conv = rlwe.plan(plan.params, *shapes)
        alone += answer_seconds(conv, plan.params.reply_bytes(0))
        alone += upload_seconds(conv.uploads, plan.params.upload_bytes)
    assert seconds(plan) <= alone + 1e-12


def two_readers(shift: int) -> Program:
    """A small and a wide kernel on one tensor: their own best layouts differ."""
    steps = (
        Linear("a", (Term(INPUT, 3, 3, 1, 1, 1, 1),), Shape(8, 16, 16), 0, 20),
        Relu("a/relu", "a", 8),
        Linear("b", (Term("a/relu", 3, 3, 1, 1, 1, 1),), Shape(8, 16, 16), 0, 24),
        Relu("b/relu", "b", 8),
        Linear(
            "c", (Term("a/relu", 5, 5, 1, 2, 4, 4, shift), Term("b/relu", 3, 3, 1, 1, 1, 1)), Shape(8, 16, 16), 0, 30
        ),
        Relu("c/relu", "c", 8),
        Linear("logits", (Term("c/relu", 16, 16),), Shape(10, 1, 1), 0, 30),
    )
    return Program(Shape(3, 16, 16), steps, 32, 8)


def test_two_maps_agree_on_one_upload() -> None:
    plan = plan_program(two_readers(0))
    assert plan.uploads["b"][0] == plan.uploads["c"][0]
    assert sum(upload.tensor == "a/relu" for upload in plan.distinct_uploads) == 1


def test_a_shift_is_another_upload() -> None:
    plan = plan_program(two_readers(3))
    assert {upload.shift for upload in plan.distinct_uploads if upload.tensor == "a/relu"} == {0, 3}


@pytest.mark.parametrize("images", [1, 3])
def test_sizes_are_those_of_real_messages(images: int) -> None:
    plan = plan_program(two_readers(0))
    client = rlwe.LinearClient(plan.params, Prg())
    server = rlwe.LinearServer(plan.params, client.public_key(), Prg())
    conv = plan.convs["b"]
    (upload,) = plan.uploads["b"]
    mask = np.arange(images * 8 * 256, dtype=np.uint64).reshape(images, 8, 16, 16)
    wire = client.encrypt(upload.layout, mask)
    assert len(wire) == plan.upload_bytes(upload, images)
    prepared = rlwe.PreparedConv(plan.params, conv, [np.ones((8, 8, 3, 3), np.int32)])
    reply, share = server.reply(prepared, [server.parse(upload.layout, wire, images)], images)
    assert len(reply) == plan.reply_bytes("b", images)
    total = (client.decrypt(conv, reply, images) + share) & np.uint64(2**32 - 1)
    padded = np.pad(mask.sum(axis=1), ((0, 0), (1, 1), (1, 1)))
    sums = np.sum([padded[:, y : y + 16, x : x + 16] for y in range(3) for x in range(3)], axis=0)
    np.testing.assert_array_equal(total, np.repeat(sums[:, None], 8, axis=1))
