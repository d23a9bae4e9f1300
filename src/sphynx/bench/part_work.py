"""Measure both parties' offline work on truncations, squares and gates: CPU seconds of the protocol's own code, message
by message. Two sizes of a layer tell its OTs' work from what it costs at any size; gates of two lengths what each byte
of their corrections costs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sphynx.bench.relu_work import FEW, MANY, F, K, W, line, median_cpu_seconds, ready_ots
from sphynx.program.cost.cost import square_cost, truncation_cost
from sphynx.program.cost.rates import PartSeconds
from sphynx.protocol.cross_product import Squaring, SquaringRequest, answer_squaring
from sphynx.protocol.gating import Gating, GatingOffer, GatingRequest, accepted_offer
from sphynx.protocol.ots import ClientOts, ServerOts
from sphynx.protocol.relu_layer import Words
from sphynx.protocol.truncate import Truncation, TruncationRequest, answer_truncation

FEW_GATES, MANY_GATES = 64, 512
SHORT, LONG = 1, 256  # elements that a gate multiplies

Work = Callable[[ServerOts, ClientOts], None]


@dataclass(frozen=True)
class PartWork:
    truncation: PartSeconds
    square: PartSeconds
    gate: PartSeconds
    gate_byte_s: float


def part_seconds(repeats: int) -> PartWork:
    ots = ready_ots()

    def seconds(work: Work) -> float:
        return median_cpu_seconds(lambda: work(*ots), repeats)

    def part(work: Callable[[int], Work], ots_of: Callable[[int], int]) -> PartSeconds:
        return PartSeconds(*line(ots_of(FEW), seconds(work(FEW)), ots_of(MANY), seconds(work(MANY))))

    truncation = part(_truncation, lambda count: truncation_cost(count, W, K, F).truncation_ots)
    square = part(_squaring, lambda count: square_cost(count, W, K, 0, 0).square_ots)
    few, many, longer = (
        (plan, seconds(_gating(plan)))
        for plan in (Gating(K, FEW_GATES, SHORT), Gating(K, MANY_GATES, SHORT), Gating(K, FEW_GATES, LONG))
    )
    gate = PartSeconds(*line(2 * few[0].ots, few[1], 2 * many[0].ots, many[1]))
    more_bytes = 2 * (sum(longer[0].correction_bytes) - sum(few[0].correction_bytes))
    return PartWork(truncation, square, gate, max(longer[1] - few[1], 0.0) / more_bytes)


def _truncation(count: int) -> Work:
    plan, x = Truncation(W, K, F, count), _shares(count)

    def both(server: ServerOts, client: ClientOts) -> None:
        request = TruncationRequest(plan, client, x)
        answer, _ = answer_truncation(plan, server, bytearray(b"".join(request.message)))
        request.finish(bytearray(b"".join(answer)))

    return both


def _squaring(count: int) -> Work:
    plan, x = Squaring(K, count), _shares(count)

    def both(server: ServerOts, client: ClientOts) -> None:
        request = SquaringRequest(plan, client, x)
        answer, _ = answer_squaring(plan, server, bytearray(b"".join(request.message)))
        request.finish(bytearray(b"".join(answer)))

    return both


def _gating(plan: Gating) -> Work:
    x = _shares(plan.count + plan.gates)

    def both(server: ServerOts, client: ClientOts) -> None:
        offer = GatingOffer(plan, server)
        offered = accepted_offer(plan, client, bytearray(b"".join(offer.message)))
        request = GatingRequest(plan, client, x, offered)
        answer, _ = offer.answer(server, bytearray(b"".join(request.message)))
        request.finish(bytearray(b"".join(answer)))

    return both


def _shares(count: int) -> Words:
    return np.random.default_rng(0).integers(0, 1 << W, count, np.uint64)
