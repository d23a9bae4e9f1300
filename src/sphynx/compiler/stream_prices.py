"""Prices of a stream network's channels: how much longer an inference takes with more of them in one block."""

from __future__ import annotations

from dataclasses import replace

from sphynx.compiler.latency import design_estimate, stream_cuts
from sphynx.program.backends import Backend
from sphynx.program.cost.estimate import Estimate
from sphynx.program.cost.link import Link
from sphynx.program.cost.rates import Rates
from sphynx.space.prices import Counted, Prices
from sphynx.space.stream import StreamDesign

# A half of a block's channels is added and taken away. Offline, whole ciphertexts are steps that a smaller change does
# not see past: by a quarter more alone, two equal blocks were priced 5 and 14 us a ReLU, where both cost 12 to 17.
PART = 2
LEAST_CHANGED = 8
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
            more = max(LEAST_CHANGED, channels // PART)
            less = min(more, channels - 1)
            above, below = (
                _seconds(design_estimate(changed, rates, link, whole.backend, cuts=cuts), counted)
                for changed in (
                    _with_channels(design, number, block, channels + more),
                    _with_channels(design, number, block, channels - less),
                )
            )
            prices.append(max((above - below) / (more + less), LEAST_SECONDS))
    spent = sum(C * price for C, price in zip((C for s in design.stages for C in s.channels), prices, strict=True))
    return Prices(str(design), link.name, whole.backend, rates.machine, base - spent, tuple(prices), counted)


def _with_channels(design: StreamDesign, number: int, block: int, channels: int) -> StreamDesign:
    stage = design.stages[number]
    own = (*stage.channels[:block], channels, *stage.channels[block + 1 :])
    return replace(design, stages=(*design.stages[:number], replace(stage, channels=own), *design.stages[number + 1 :]))


def _seconds(estimated: Estimate, counted: Counted) -> float:
    total = estimated.total
    return total.online_seconds + (total.offline_seconds if counted == "total" else 0.0)
