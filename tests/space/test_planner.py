"""The planner: budgets as people write them, all pairs within tolerance, the paper's own choices by default."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sphynx.errors import InputError
from sphynx.space.account import relu_count
from sphynx.space.design import Design
from sphynx.space.planner import MAX_DEPTH, MIN_DEPTH, parse_percentage, parse_relu_budget, plan
from sphynx.space.published_cells import SPHYNX
from sphynx.space.tally import Shape

CIFAR = Design(SPHYNX, 5, 5, (0, 1))


@pytest.mark.parametrize(
    ("text", "budget"),
    [("50k", 50_000), ("1.2M", 1_200_000), ("51200", 51_200), ("51,200", 51_200), ("25.6K", 25_600), (" 1m ", 10**6)],
)
def test_budgets_as_people_write_them(text: str, budget: int) -> None:
    assert parse_relu_budget(text) == budget


@pytest.mark.parametrize("text", ["", "k", "-5", "0", "5g", "1e3", "0.0001k", "fifty"])
def test_what_is_not_a_budget(text: str) -> None:
    with pytest.raises(InputError, match="not a valid ReLU budget"):
        parse_relu_budget(text)


@pytest.mark.parametrize("text", ["5%", "0.05"])
def test_tolerances(text: str) -> None:
    assert parse_percentage(text) == 0.05


@pytest.mark.parametrize("text", ["", "100%", "-1%", "x"])
def test_what_is_not_a_tolerance(text: str) -> None:
    with pytest.raises(InputError, match="not a valid tolerance"):
        parse_percentage(text)


@pytest.mark.parametrize(
    ("budget", "channels", "depth"),
    [(25_600, 5, 5), (30_720, 5, 6), (40_960, 5, 8), (51_200, 5, 10), (71_680, 7, 10), (102_400, 10, 10)],
)
def test_the_papers_networks_are_the_default_choices(budget: int, channels: int, depth: int) -> None:
    chosen = plan(CIFAR, budget, 0.05).chosen.design
    assert (chosen.channels, chosen.depth) == (channels, depth)


def test_the_one_network_of_the_paper_that_is_not_the_default_is_listed_and_said() -> None:
    plans = plan(CIFAR, 230_400, 0.05)
    assert (15, 15) in {(found.channels, found.depth) for found in plans.plans}
    assert plans.chosen.depth == 10
    assert "except its largest on CIFAR-100 (C=15, D=15)" in plans.reason


@settings(max_examples=15)
@given(st.integers(200, 60_000), st.sampled_from([0.0, 0.02, 0.1]), st.sampled_from(["small", "imagenet"]))
def test_the_list_is_complete(budget: int, tolerance: float, stem: str) -> None:
    """Against a count of every (C, D) in a box that is certain to hold all of them."""
    image = Shape(1, 8, 8) if stem == "small" else Shape(3, 32, 32)
    template = Design(SPHYNX, 5, 5, (0, 1), image=image, stem=stem)  # type: ignore[arg-type]
    wanted = set()
    for depth in range(MIN_DEPTH, MAX_DEPTH + 1):
        for channels in range(2 if stem == "imagenet" else 1, budget // 60 + 2):
            if stem == "small":
                count = 64 * channels * depth
            else:
                count = (channels // 2) * 16 * 16 + channels * 8 * 8 + channels * 4 * 4 * depth
            if abs(count - budget) <= tolerance * budget:
                wanted.add((channels, depth, count))
    try:
        plans = plan(template, budget, tolerance)
    except InputError:
        assert not wanted
        return
    assert {(p.design.channels, p.design.depth, p.relus) for p in plans.plans} == wanted
    assert sum(p.chosen for p in plans.plans) == 1


def test_a_budget_nothing_meets_names_the_nearest() -> None:
    with pytest.raises(InputError, match="give 10 ReLUs") as caught:
        plan(CIFAR, 10, 0.05)
    assert "3,072 (C=1, D=3): use it as the budget." in caught.value.remedy  # no tolerance reaches it


@pytest.mark.parametrize(("size", "budget"), [(32, 3_600), (33, 4_000), (96, 50_000), (7, 100)])
def test_the_tolerance_that_is_named_is_enough(size: int, budget: int) -> None:
    template = Design(SPHYNX, 5, 5, (0, 1), image=Shape(3, size, size))
    with pytest.raises(InputError, match="no channels and depth") as caught:
        plan(template, budget, 0.0)
    named = caught.value.remedy.partition("`tolerance=")[2].partition("`")[0]
    assert plan(template, budget, parse_percentage(named)).plans


def test_counts_match_the_account() -> None:
    for p in plan(CIFAR, 50_000, 0.05).plans:
        assert p.relus == relu_count(p.design)
