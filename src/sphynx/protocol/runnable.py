"""Check that two parties can run a program: when it is compiled, so that not the first inference finds out.

Under RLWE a share differs from the truth by one, in its last bit before truncation, with a small probability
(docs/rlwe.md). It grows with the ring's width and, where replies keep all primes, with the weights. What counts is the
sum over the elements of all maps of an image: a larger network needs it to be smaller for each. The encryption
parameters follow from the width of the ring, so a program is given a wider one where its own would not do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import inf, log2

from sphynx.core import rlwe
from sphynx.errors import SphynxError
from sphynx.program.backends import BACKENDS, Backend
from sphynx.program.convolve import Array
from sphynx.program.ir import Program
from sphynx.protocol.activations import Layers, activation_layers
from sphynx.protocol.linear_plan import ProgramPlan, plan_group, plan_program
from sphynx.protocol.message_sizes import check_messages

MAX_LOG2_OFF_BY_ONE = -24.0  # for each image
WIDER_RINGS = (40, 49)  # the narrowest whose replies have more primes, and whose polynomials have a higher degree


def log2_off_by_one(program: Program, weights: Mapping[str, Array]) -> float:
    """Return log2 of the probability that any share of one image is off by one, or of a bound on it."""
    total = sum(_chances(program, weights).values())
    return log2(total) if total else -inf


def require_rare(program: Program, weights: Mapping[str, Array]) -> None:
    """Refuse a program that would answer an image with shares off by one too often."""
    chances = _chances(program, weights)
    if sum(chances.values()) > 2.0**MAX_LOG2_OFF_BY_ONE:
        raise SphynxError(
            f"under encryption a result would be off by one with probability 2^{log2(sum(chances.values())):.1f} "
            f"for each image, above all in {max(chances, key=lambda name: chances[name])}; "
            f"2^{MAX_LOG2_OFF_BY_ONE:.0f} is allowed",
            where=program.name or "program",
            remedy="Compile the network again, which gives it a wider ring, or with fewer bits (`weight_bits`).",
        )


def _chances(program: Program, weights: Mapping[str, Array]) -> dict[str, float]:
    """The expected number of shares that are off by one, by linear map, for an image alone or in a group, whichever is
    larger: their replies hold different numbers of outputs, and with them of weights."""
    norms = {
        step.name: rlwe.WeightNorms.of([weights[step.weight_name(number)] for number in range(len(step.terms))])
        for step in program.linears
    }
    plans = plan_program(program), plan_group(program)
    return max((_chances_in(plan, norms) for plan in plans), key=lambda found: sum(found.values()))


def _chances_in(plan: ProgramPlan, norms: Mapping[str, rlwe.WeightNorms]) -> dict[str, float]:
    found = {}
    for name, conv in plan.convs.items():
        bounds = rlwe.noise_bounds(plan.params, conv, norms[name])
        counts = (conv.tiles * count // conv.interleaved for count in conv.used_counts)
        found[name] = sum(count * 2.0**bound.log2_off_by_one for count, bound in zip(counts, bounds, strict=True))
    return found


def with_ring_for(program: Program, weights: Mapping[str, Array]) -> Program:
    """Return the program as it is, or in the next wider ring in which it is rare that a share is off by one.

    Its integers stay the same. Where no ring helps it is returned as it was, for `require_rare` to refuse."""
    rings = (ring for ring in WIDER_RINGS if ring > program.ring_bits)
    for candidate in (program, *(replace(program, ring_bits=ring) for ring in rings)):
        if log2_off_by_one(candidate, weights) <= MAX_LOG2_OFF_BY_ONE:
            return candidate
    return program


def require_runnable(program: Program, weights: Mapping[str, Array]) -> None:
    """Refuse by its name a layer that does not fit a ciphertext, a message or a backend, and too noisy programs.

    What one of the backends can run is enough.
    """
    plan, layers = plan_program(program), activation_layers(program, 1)
    require_rare(program, weights)
    refusals = [refusal for backend in BACKENDS if (refusal := _refusal(plan, layers, backend)) is not None]
    if len(refusals) == len(BACKENDS):
        raise refusals[0]


def _refusal(plan: ProgramPlan, layers: Layers, backend: Backend) -> SphynxError | None:
    try:
        check_messages(plan, layers, backend, images=1)
    except SphynxError as refusal:
        return refusal
    return None
