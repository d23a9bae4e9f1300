"""<chi, M r> = <M^T chi, r> modulo 2^64, on programs by hand, on random ones and on all that are shipped."""

from collections.abc import Callable, Mapping

import numpy as np
import pytest
from tests.program.programs import random_weights, several_program, small_program
from tests.protocol.random_programs import Case, random_case, random_public_case

from sphynx.compiler.derive import derive_weights
from sphynx.core.ring import RingConv
from sphynx.program.convolve import Array
from sphynx.program.cost.cost import conv_shape
from sphynx.program.folder import load_program
from sphynx.program.ir import INPUT, Linear, Program, PublicMap
from sphynx.protocol.shares import Words, apply_public
from sphynx.protocol.verify.adjoint import transpose
from sphynx.zoo.shipped import folder_of, model_names


def shares_of(
    program: Program, weights: Mapping[str, Array], masks: Mapping[str, Words], own: Mapping[str, Words]
) -> dict[str, Words]:
    """The client's share of every tensor, W r - s for a linear map, by the compiled ring convolutions."""
    shares = dict(masks)
    for step in program.steps:
        if isinstance(step, Linear):
            total = np.zeros((len(masks[INPUT]), *step.shape), np.uint64) - own[step.name]
            for number, term in enumerate(step.terms):
                shape = conv_shape(term, program.shapes[term.source], step.shape)
                conv = RingConv(shape, 64, weights[step.weight_name(number)].astype(np.int32))
                for image, out in zip(shares[term.source], total, strict=True):
                    out += conv(image, 1) << np.uint64(term.shift)
            shares[step.name] = total
        elif isinstance(step, PublicMap):
            shares[step.name] = apply_public(step, shares)
    return shares


def holds(program: Program, weights: Mapping[str, Array], images: int = 2) -> bool:
    random = np.random.default_rng(7)

    def words(name: str) -> Words:
        return random.integers(0, 1 << 64, (images, *program.shapes[name]), np.uint64)

    masks = {INPUT: words(INPUT)} | {step.name: words(step.name) for step in program.activations}
    own = {step.name: words(step.name) for step in program.linears}
    committed = {step.name: step.sources[0] for step in program.activations} | {
        name: name for name in program.output_names
    }
    chi = {name: words(tensor) for name, tensor in committed.items()}
    shares = shares_of(program, weights, masks, own)
    factors = transpose(program, weights, chi)
    assert factors.masks.keys() == masks.keys() and factors.maps.keys() == own.keys()
    total = sum(int((chi[name] * shares[tensor]).sum(dtype=np.uint64)) for name, tensor in committed.items())
    total -= sum(int((factor * masks[name]).sum(dtype=np.uint64)) for name, factor in factors.masks.items())
    total += sum(int((factor * own[name]).sum(dtype=np.uint64)) for name, factor in factors.maps.items())
    return total % (1 << 64) == 0


def test_a_program_by_hand() -> None:
    assert holds(small_program(), random_weights(small_program(), seed=1))
    assert holds(several_program(), random_weights(several_program(), seed=1))


@pytest.mark.parametrize("draw", [random_case, random_public_case])
@pytest.mark.parametrize("seed", range(10))
def test_random_programs(draw: Callable[[int], Case], seed: int) -> None:
    case = draw(seed)
    assert holds(case.program, case.weights)


LARGE = ("51k", "102k", "100k")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name.endswith(LARGE) else ()) for name in model_names()],
)
def test_shipped_programs(name: str) -> None:
    folder = folder_of(name)
    program = load_program(folder / "program")
    assert holds(program, derive_weights(folder, folder / "program", program), images=1)
