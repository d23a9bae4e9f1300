"""Prices of a stream network's channels: how much longer an inference takes with a few more of them in one block."""

from __future__ import annotations

from dataclasses import replace

from sphynx.compiler.latency import design_estimate, stream_cuts
from sphynx.program.backends import Backend
from sphynx.program.cost.estimate import Estimate, Rates
from sphynx.program.cost.link import Link
from sphynx.space.prices import Counted, Prices
from sphynx.space.stream import StreamDesign

PART = 4  # of a block's channels are added: enough that whole ciphertexts do not hide the slope
LEAST_ADDED = 8
LEAST_SECONDS = 1e-9  # where more channels come out as fast: they are never free


def stream_prices(
    design: StreamDesign, rates: Rates, link: Link, backend: Backend | None, counted: Counted = "online"
) -> Prices:
    """The protocol for ReLUs and the cuts that are chosen for the design are kept for all."""
    cuts = stream_cuts(design, link, backend)
    whole = design_estimate(design, rates, link, backend, cuts=cuts)
    base = _seconds(whole, counted)
    prices = []
    for number, stage in enumerate(design.stages):
        for block, channels in enumerate(stage.channels):
            added = max(LEAST_ADDED, channels // PART)
            more = (*stage.channels[:block], channels + added, *stage.channels[block + 1 :])
            stages = (*design.stages[:number], replace(stage, channels=more), *design.stages[number + 1 :])
            wider = design_estimate(replace(design, stages=stages), rates, link, whole.backend, cuts=cuts)
            prices.append(max((_seconds(wider, counted) - base) / added, LEAST_SECONDS))
    spent = sum(C * price for C, price in zip((C for s in design.stages for C in s.channels), prices, strict=True))
    return Prices(str(design), link.name, whole.backend, rates.machine, base - spent, tuple(prices), counted)


def _seconds(estimated: Estimate, counted: Counted) -> float:
    total = estimated.total
    return total.online_seconds + (total.offline_seconds if counted == "total" else 0.0)
