"""Stream networks for a budget: never above it, near it, most ReLUs on the two smallest maps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sphynx.errors import InputError
from sphynx.space.stream_planner import plan_stream
from sphynx.space.tally import Shape

CIFAR = Shape(3, 32, 32)


@given(st.integers(4_000, 200_000), st.sampled_from([24, 28, 32, 64, 96]))
def test_within_the_budget(budget: int, size: int) -> None:
    plans = plan_stream(budget, 0.05, Shape(3, size, size), 10)
    assert sum(plan.chosen for plan in plans.plans) == 1
    for plan in plans.plans:
        assert 0.95 * budget <= plan.relus <= budget
        assert plan.relus == plan.design.relus
        by_stage = [
            sum(stage.channels) * place.height * place.width
            for stage, place in zip(plan.design.stages, plan.design.maps, strict=True)
        ]
        assert sum(by_stage[-2:]) >= 0.75 * plan.relus


def test_the_default_at_25k() -> None:
    plans = plan_stream(25_600, 0.05, CIFAR, 100)
    assert [plan.design.blocks for plan in plans.plans] == [5, 7, 8, 9, 10]
    assert str(plans.chosen.design) == "16:64:24 8:128:72x2 4:256:320x2"
    assert plans.chosen.design.borders == "halo"


def test_width_and_borders_are_the_callers() -> None:
    chosen = plan_stream(25_600, 0.05, CIFAR, 100, "zero", 384).chosen.design
    assert [stage.width for stage in chosen.stages] == [96, 192, 384] and chosen.borders == "zero"


def test_small_images_have_fewer_stages() -> None:
    assert len(plan_stream(1_000, 0.05, Shape(1, 8, 8), 10).chosen.design.stages) == 1


def test_large_grey_images_rectify_on_their_last_four_maps() -> None:
    chosen = plan_stream(11_264, 0.05, Shape(1, 128, 128), 3).chosen.design
    assert str(chosen) == "9x9/4 32:48:4 16:96:12 8:128:32 4:192:64x2" and chosen.relus == 11_264
    assert str(plan_stream(11_000, 0.05, Shape(1, 128, 128), 3).design).startswith("9x9/4 32:48:4 16:96:12 8:128:32")


@given(st.integers(8_000, 200_000), st.sampled_from([128, 150, 200, 224, 300]))
def test_large_images_within_the_budget(budget: int, size: int) -> None:
    for plan in plan_stream(budget, 0.05, Shape(1, size, size), 3).plans:
        assert 0.95 * budget <= plan.relus <= budget
        assert all(stage.channels for stage in plan.design.stages[-3:])


def test_a_budget_too_small_for_any_block() -> None:
    with pytest.raises(InputError, match="no stream network has 20 ReLUs"):
        plan_stream(20, 0.05, CIFAR, 10)
