"""How often an inference has a share that is off by one: the numbers of SECURITY.md, and programs beyond the limit."""

from __future__ import annotations

import re
from dataclasses import replace
from math import log2
from pathlib import Path

import numpy as np
import pytest
from tests.program.programs import random_weights
from tests.service.tiny import tiny_program

from sphynx.core import rlwe
from sphynx.core.conv_shape import ConvShape
from sphynx.errors import SphynxError
from sphynx.program.convolve import Array
from sphynx.program.folder import load_program
from sphynx.program.interpret import interpret
from sphynx.program.ir import INPUT, Linear, Program, Relu, Term
from sphynx.protocol.linear import ServerModel
from sphynx.protocol.runnable import MAX_LOG2_OFF_BY_ONE, log2_off_by_one, require_rare, require_runnable, with_ring_for
from sphynx.space.tally import Shape
from sphynx.zoo.shipped import model_names, program_path

SECURITY = Path(__file__).parents[2] / "SECURITY.md"


def all_equal(program: Program, value: int) -> dict[str, Array]:
    return {name: np.full(shape, value, np.int32) for name, shape in program.weight_shapes.items()}


def shipped(name: str) -> float:
    """Replies of their rings drop a prime, and with it all noise that depends on weights: none and the largest give the
    same number."""
    program = load_program(program_path(name))
    largest = all_equal(program, 2 ** (program.weight_bits - 1))
    found = {round(log2_off_by_one(program, weights), 1) for weights in (all_equal(program, 0), largest)}
    assert len(found) == 1 and with_ring_for(program, largest) is program
    return found.pop()


@pytest.mark.slow  # of every shipped network
def test_the_numbers_of_security_md() -> None:
    told = re.search(
        rf"at most 2\^{MAX_LOG2_OFF_BY_ONE:.0f} for each image, .*: 2\^(-[\d.]+) for the cells of 25\.6K, "
        r"2\^(-[\d.]+) for the stream of 25\.5K, at most 2\^(-[\d.]+) for every network that comes with Sphynx",
        SECURITY.read_text(),
    )
    assert told is not None
    found = {name: shipped(name) for name in model_names()}
    print(
        *(f"{name}: off by one with probability 2^{number} for each image" for name, number in found.items()), sep="\n"
    )
    named = found["sphynx-cifar100-25k"], found["stream-cifar100-25k"], max(found.values())
    assert tuple(map(float, told.groups())) == named


def test_the_sum_is_that_of_all_elements() -> None:
    """Compare with a sum by hand, for a map of one reply for each of its tiles."""
    program = replace(tiny_program(), ring_bits=48)
    weights = random_weights(program)
    params, expected = rlwe.Params.for_ring(48), 0.0
    shapes = (ConvShape.square(1, (4, 4), 2, 3, padding=1), ConvShape(2, 4, 4, 3, 4, 4, 1, 1))
    for step, shape, elements in zip(program.linears, shapes, (32, 3), strict=True):
        factor = weights[step.weight_name(0)].astype(float)
        assert rlwe.plan(params, shape).replies == 1
        each = params.noise(float(np.abs(factor).sum()), float((factor**2).sum()))[2]
        expected += elements * 2.0**each
    assert log2_off_by_one(program, weights) == pytest.approx(log2(expected))


def large_program(ring_bits: int) -> Program:
    """262,144 elements, each off by one with probability 2^-40.4 in a ring of 39 bits."""
    steps = (
        Linear("first", (Term(INPUT, 3, 3, 1, 1, 1, 1),), Shape(64, 64, 64), 4, 20),
        Relu("relu", "first", 3),
        Linear("logits", (Term("relu", 64, 64),), Shape(3, 1, 1), 16, 32),
    )
    return Program(Shape(1, 64, 64), steps, ring_bits, 8, name="large")


def test_a_program_beyond_the_limit_is_refused_and_given_a_wider_ring() -> None:
    program = large_program(39)
    weights = random_weights(program)
    assert round(log2_off_by_one(program, weights), 1) == -22.4
    for refuse in (require_rare, require_runnable, ServerModel):
        with pytest.raises(
            SphynxError, match=r"large: .* 2\^-22\.4 for each image, above all in first; 2\^-24"
        ) as caught:
            refuse(program, weights)
        assert "Compile the network again" in caught.value.remedy
    wider = with_ring_for(program, weights)
    assert wider.ring_bits == 40 and replace(wider, ring_bits=39) == program
    require_rare(wider, weights)
    pixels = np.random.default_rng(0).integers(0, 256, (1, 1, 64, 64)).astype(np.uint8)
    assert np.array_equal(interpret(wider, weights, pixels), interpret(program, weights, pixels))


def test_weights_that_are_too_large_for_one_set_of_parameters_get_the_next() -> None:
    """Without a dropped prime noise grows with the weights."""
    program = large_program(48)
    weights = {name: value.astype(np.int32) << 8 for name, value in random_weights(program).items()}
    assert with_ring_for(program, weights).ring_bits == 49


def test_every_ring_up_to_64_bits_serves_a_quarter_of_a_million_elements() -> None:
    for ring_bits in range(32, 65):
        program = large_program(ring_bits)
        require_rare(with_ring_for(program, weights := random_weights(program)), weights)
