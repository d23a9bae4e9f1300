"""Prices of channels: positive, highest where a channel has most ReLUs, and the estimate where they were taken."""

import pytest

from sphynx.compiler.latency import design_estimate
from sphynx.compiler.stream_prices import stream_prices
from sphynx.program.cost.link import LINKS
from sphynx.program.cost.rates import REFERENCE
from sphynx.space.stream import Stage, StreamDesign
from sphynx.space.tally import Shape


def test_prices_meet_the_estimate() -> None:
    design = StreamDesign((Stage(8, (8,)), Stage(16, (16,)), Stage(32, (32,))), Shape(3, 32, 32), 10)
    prices = stream_prices(design, REFERENCE, LINKS["lan"], "gc")
    seconds = design_estimate(design, REFERENCE, LINKS["lan"], "gc").total.online_seconds
    assert prices.seconds(design) == pytest.approx(seconds)
    assert prices.channel_seconds[0] > prices.channel_seconds[1] > prices.channel_seconds[2] > 0
    total = stream_prices(design, REFERENCE, LINKS["lan"], "gc", "total")
    offline = design_estimate(design, REFERENCE, LINKS["lan"], "gc").total.offline_seconds
    assert total.seconds(design) == pytest.approx(seconds + offline) and total.counted == "total"
    assert prices.backend == "gc" and prices.stages == str(design)


def test_a_large_stream_is_estimated_and_priced_as_it_would_be_cut() -> None:
    stages = (Stage(32, (8,)), Stage(64, (64,) * 2), Stage(128, (256,) * 3))
    design = StreamDesign(stages, Shape(3, 32, 32), 10)
    cut, fused = (design_estimate(design, REFERENCE, LINKS["lan"], "gmw", cuts=cuts).total for cuts in (None, ()))
    assert cut.offline_seconds + cut.online_seconds < fused.offline_seconds + fused.online_seconds
    # Were wider ones priced fused, the difference between the two would count as channels'.
    prices = stream_prices(design, REFERENCE, LINKS["lan"], "gmw")
    channels = prices.seconds(design) - prices.fixed_seconds
    assert 0 < channels < cut.online_seconds


def test_offline_prices_foretell_other_allocations() -> None:
    """Whole ciphertexts are steps in what a channel costs offline: prices are long slopes, equal blocks cost alike."""
    image = Shape(3, 32, 32)
    given = StreamDesign((Stage(64, (24,)), Stage(128, (72, 72)), Stage(256, (316, 316))), image, 100)
    other = StreamDesign((Stage(64, (40,)), Stage(128, (64, 64)), Stage(256, (272, 232))), image, 100)
    prices = stream_prices(given, REFERENCE, LINKS["lan"], "gmw", "total")
    estimated = design_estimate(other, REFERENCE, LINKS["lan"], "gmw").total
    assert prices.seconds(other) == pytest.approx(estimated.offline_seconds + estimated.online_seconds, rel=0.05)
    first, second = prices.channel_seconds[1:3]
    assert 0.6 < first / second < 1.7
