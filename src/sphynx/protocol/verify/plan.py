"""How strictly a client is checked: the ring of the linear phase and the number of secret functionals. Public.

Shares are checked modulo 2^K, the circuits compute modulo 2^k on their low bits. An error that the circuits see is not
a multiple of 2^k, and passes one functional with probability at most 2^-(K-k+1), so t of them with 2^-t(K-k+1).
A wider ring makes shares off by one more likely (runnable.py): here that refuses an honest client's bundle, and the
whole group that it is prepared with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import log2

from sphynx.errors import SphynxError
from sphynx.program.convolve import Array
from sphynx.program.ir import INPUT, Gate, Program, Square
from sphynx.program.security import Security
from sphynx.protocol.runnable import MAX_LOG2_OFF_BY_ONE, log2_off_by_one
from sphynx.protocol.verify.products import message_bytes
from sphynx.protocol.wires import Wires
from sphynx.record import Record

SECURITY_BITS = 36  # a harmful deviation passes with at most 2^-36
RINGS = range(40, 49)  # the widest for which polynomials of degree 4096 do
BUNDLE_IMAGES = 16  # as many as a server takes in one inference
MAX_FUNCTIONALS = 8


@dataclass(frozen=True)
class CheckPlan(Record):
    ring_bits: int  # K
    functionals: int  # t

    def __str__(self) -> str:
        return f"malicious-client ring {self.ring_bits} functionals {self.functionals}"

    def wide(self, program: Program) -> Program:
        """The same program with the linear phase's ring."""
        return replace(program, ring_bits=self.ring_bits)

    def security_bits(self, program: Program) -> int:
        return self.functionals * (self.ring_bits - program.ring_bits + 1)


def commitments(program: Program, plan: CheckPlan, images: int) -> dict[str, Wires]:
    """The client's numbers that OTs commit to: its share of what enters each activation and its mask of what leaves it,
    its mask of the input, its share of each output."""
    k, wide = program.ring_bits, plan.ring_bits
    made = {INPUT: Wires(images * program.image.size, (k,))}
    for step in program.activations:
        made[step.name] = Wires(images * program.shapes[step.name].size, (wide, k))
    for name in program.output_names:
        made[name] = Wires(images * program.shapes[name].size, (wide,))
    return made


def product_bytes(program: Program, plan: CheckPlan, images: int = 1) -> int:
    sizes = (message_bytes(wires, plan.ring_bits) for wires in commitments(program, plan, images).values())
    return plan.functionals * sum(sizes)


def plan_security(
    security: Security, program: Program, weights: Mapping[str, Array], *, images: int = BUNDLE_IMAGES
) -> CheckPlan | None:
    """Plan the check of a kind of security, None for the one without."""
    return plan_check(program, weights, images=images) if security == "malicious-client" else None


def require_strict(plan: CheckPlan, program: Program, *, where: str) -> None:
    """Refuse a plan, chosen by another party, that is weaker than this mode promises."""
    refuse_unchecked(program)
    if plan.security_bits(program) < SECURITY_BITS:
        raise SphynxError(
            f"a check with a ring of {plan.ring_bits} bits and {plan.functionals} functionals is too weak",
            where=where,
            remedy="Use the same version of sphynx on both sides.",
        )


def plan_check(program: Program, weights: Mapping[str, Array], *, images: int = BUNDLE_IMAGES) -> CheckPlan:
    """Choose the plan with the fewest bytes that is strict enough and rarely refuses an honest client: with at most
    2^-24 for all `images` that are checked together, of one bundle or of a group."""
    refuse_unchecked(program)
    most = MAX_LOG2_OFF_BY_ONE - log2(images)
    for plan in sorted(_candidates(program), key=lambda plan: product_bytes(program, plan)):
        if log2_off_by_one(plan.wide(program), weights) <= most:
            return plan
    raise SphynxError(
        "no ring is wide enough to check a client and narrow enough for exact shares",
        where=program.name or "program",
        remedy="Take fewer `images` in a bundle, compile the network with fewer bits (`weight_bits`), or serve it "
        "without this mode.",
    )


def _candidates(program: Program) -> list[CheckPlan]:
    plans = []
    for ring in RINGS:
        gained = ring - program.ring_bits + 1
        if gained > 0 and (functionals := -(-SECURITY_BITS // gained)) <= MAX_FUNCTIONALS:
            plans.append(CheckPlan(ring, functionals))
    return plans


def refuse_unchecked(program: Program) -> None:
    """Refuse programs whose nonlinear steps are not garbled circuits."""
    for step in program.activations:
        if isinstance(step, Square | Gate):
            kind = "a square" if isinstance(step, Square) else "a product of two maps"
            raise SphynxError(
                f"{kind} is not protected against a client that cheats",
                where=step.name,
                remedy="Use ReLUs, or serve it without this mode.",
            )
