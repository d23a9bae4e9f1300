"""Candidate allocations: all within the budget, none wasteful, the same stages throughout."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sphynx.errors import InputError
from sphynx.search.allocation.candidates import allocated, allocations, latency_budget, relu_budget
from sphynx.space.prices import Prices
from sphynx.space.stream import Stage, StreamDesign
from sphynx.space.tally import Shape

DESIGN = StreamDesign((Stage(16, (12,)), Stage(32, (20, 20)), Stage(64, (40,))), Shape(3, 32, 32), 10)


@given(st.integers(400, 50_000), st.lists(st.floats(0.001, 1), min_size=4, max_size=4))
def test_any_shares(budget: int, shares: list[float]) -> None:
    made = allocated(DESIGN, shares, relu_budget(DESIGN, budget))
    assert budget - 16 < made.relus <= budget  # less than a channel of the smallest map is left
    assert [stage.width for stage in made.stages] == [16, 32, 64]
    assert [len(stage.channels) for stage in made.stages] == [1, 2, 1]


@given(st.integers(400, 50_000), st.lists(st.floats(0.001, 1), min_size=4, max_size=4), st.integers(2, 8))
def test_channels_in_multiples(budget: int, shares: list[float], multiple: int) -> None:
    made = allocated(DESIGN, shares, relu_budget(DESIGN, budget, multiple))
    assert budget - 16 * multiple < made.relus <= budget
    for channels in (C for stage in made.stages for C in stage.channels):
        assert channels < multiple or channels % multiple == 0


def test_uniform_is_uniform() -> None:
    made = allocations(DESIGN, relu_budget(DESIGN, 10_240), parts=6, randoms=3, seed=0)
    assert str(made["uniform"]) == "16:16:10 8:32:40x2 4:64:160"
    assert {"given", "uniform", "1:1:4", "2:2:2", "random 2"} <= set(made)
    assert len({one.stages for one in made.values()}) == len(made)
    assert all(one.relus <= 10_240 for one in made.values())
    two = made["2:2:2"]
    by_stage = [
        sum(stage.channels) * place.height * place.width for stage, place in zip(two.stages, two.maps, strict=True)
    ]
    assert max(by_stage) - min(by_stage) <= 256


def test_a_design_above_the_budget_is_not_a_candidate() -> None:
    assert "given" not in allocations(DESIGN, relu_budget(DESIGN, DESIGN.relus - 1), parts=3, randoms=0, seed=0)


def test_a_budget_without_room() -> None:
    with pytest.raises(InputError, match="takes 400 ReLUs, the budget is 399"):
        allocated(DESIGN, [1, 1, 1, 1], relu_budget(DESIGN, 399))


def test_a_budget_of_seconds() -> None:
    prices = Prices(str(DESIGN), "lan", "gc", "a machine", 0.010, (1e-3, 2e-4, 2e-4, 1e-4))
    assert prices.seconds(DESIGN) == pytest.approx(0.010 + 0.012 + 0.008 + 0.004)
    budget = latency_budget(DESIGN, 0.040, prices)
    for made in allocations(DESIGN, budget, parts=4, randoms=2, seed=1).values():
        assert prices.seconds(made) <= 0.040 + 1e-9
    assert prices.seconds(allocated(DESIGN, [1, 1, 1, 1], budget)) > 0.0398
    with pytest.raises(InputError, match="the prices are for"):
        latency_budget(allocated(DESIGN, [1, 1, 1, 1], budget), 0.040, prices)
