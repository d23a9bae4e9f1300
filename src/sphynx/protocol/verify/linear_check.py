"""The check that a client's shares are those of the linear maps: once for each bundle, before it is used.

    client -> server    OT extensions, choices: the bits of all that it commits to (plan.commitments)
    server -> client    for each of them late tweaks, and the products of its bits with secret factors
    client -> server    a hash of its shares of the sums T

Honest shares satisfy <chi, u> - <M^T chi, r> = -<chi, S> modulo 2^K for all t functionals (adjoint.py), so the server
knows what the client's shares of the sums must be. It compares hashes; chi is never shown, and serves until the first
failure. What a client learns from passing or failing: docs/security/malicious-client.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np

from sphynx.core import Prg
from sphynx.core.ot import FixedLabels
from sphynx.program.convolve import Array
from sphynx.program.ir import INPUT, Program
from sphynx.protocol.channel import Channel
from sphynx.protocol.ots import ServerOts
from sphynx.protocol.verify import products
from sphynx.protocol.verify.adjoint import Factors, transpose
from sphynx.protocol.verify.plan import CheckPlan
from sphynx.protocol.wires import Wires, Words

HASH_BYTES = 32


def draw_factors(
    program: Program, weights: Mapping[str, Array], plan: CheckPlan, images: int, prg: Prg
) -> list[Factors]:
    """Secret factors for every functional; images have their own, or errors in two of them could cancel."""
    shapes = {step.name: program.shapes[step.sources[0]] for step in program.activations}
    shapes.update({name: program.shapes[name] for name in program.output_names})
    functionals = []
    for _ in range(plan.functionals):
        chi = {name: np.empty((images, *shape), np.uint64) for name, shape in shapes.items()}
        for factors in chi.values():
            prg.fill_words(factors.reshape(-1))
        functionals.append(transpose(program, weights, chi))
    return functionals


def expected_sums(functionals: Sequence[Factors], shares: Mapping[str, Words], ring_bits: int) -> list[int]:
    """Compute <chi, u> - <M^T chi, r> for an honest client, from the server's own shares of the maps."""
    totals = (sum(_inner(factors.maps[name], shares[name]) for name in factors.maps) for factors in functionals)
    return [-total % (1 << ring_bits) for total in totals]


def _inner(left: Words, right: Words) -> int:
    return int((left.reshape(-1) * right.reshape(-1)).sum(dtype=np.uint64))


def send_products(
    channel: Channel,
    ots: ServerOts,
    plan: CheckPlan,
    wires: Wires,
    labels: FixedLabels,
    factors: Sequence[Sequence[Words]],
) -> list[int]:
    """The server's share of each functional's sum over one committed group; `factors` by functional and number."""
    tweaks, all_pads = products.sender_pads(ots, labels, plan.functionals)
    made = [products.send(pads, wires, own, plan.ring_bits) for pads, own in zip(all_pads, factors, strict=True)]
    channel.send(tweaks, *(message for message, _ in made))
    return [share for _, share in made]


def products_bytes(plan: CheckPlan, wires: Wires) -> int:
    """Bytes of the message that `send_products` sends."""
    part = products.message_bytes(wires, plan.ring_bits)
    return products.tweaks_bytes(plan.functionals) + plan.functionals * part


def receive_products(
    channel: Channel, plan: CheckPlan, wires: Wires, labels: Words, numbers: Sequence[Words]
) -> list[int]:
    """The client's share of each functional's sum over one committed group."""
    message = memoryview(channel.receive(products_bytes(plan, wires)))
    size, at, shares = products.message_bytes(wires, plan.ring_bits), products.tweaks_bytes(plan.functionals), []
    for pads in products.receiver_pads(labels, message[:at], plan.functionals):
        shares.append(products.receive(pads, wires, numbers, message[at : at + size], plan.ring_bits))
        at += size
    return shares


def group_factors(program: Program, factors: Factors, name: str) -> list[Words]:
    """The factors on the numbers of one committed group, in their order."""
    if name == INPUT:
        return [_negative(factors.masks[INPUT])]
    if name in program.output_names:
        return [factors.shares[name].reshape(-1)]
    return [factors.shares[name].reshape(-1), _negative(factors.masks[name])]


def _negative(words: Words) -> Words:
    return (np.uint64(0) - words).reshape(-1)


def hash_of_sums(bundle_id: bytes, sums: Sequence[int], ring_bits: int) -> bytes:
    digest = hashlib.blake2b(bundle_id, digest_size=HASH_BYTES, person=b"sphynx sums")
    for total in sums:
        digest.update((total % (1 << ring_bits)).to_bytes(8, "little"))
    return digest.digest()
