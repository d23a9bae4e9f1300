"""The rules on DARTS's first epoch, on planted searches and on the kept ones."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from reproduction.first_epochs import FirstEpoch, judge_waiting, judge_width, read_first_epochs, write_first_epochs

SEARCHES = Path(__file__).parents[2] / "results" / "search"


def first(channels: int, skips: int, convolutions: int = 0, waited: int = 0) -> FirstEpoch:
    return FirstEpoch("name", channels, 0, waited, skips, convolutions, None)


@pytest.mark.parametrize(
    ("skips", "found"), [((3, 5, 8), True), ((5, 3, 8), False), ((3, 9, 8), False), ((8, 8, 8), False)]
)
def test_the_width_does_it_where_skips_grow_with_it(skips: tuple[int, int, int], found: bool) -> None:
    given = [first(width, number) for width, number in zip((5, 8, 16), skips, strict=True)]
    assert judge_width([*given, first(16, 0, waited=5)]) is found


@pytest.mark.parametrize(("kept", "told"), [(0, "are not"), (1, "undecided"), (2, "undecided"), (3, "are the cause")])
def test_waiting_is_judged_by_the_convolutions_that_stay(kept: int, told: str) -> None:
    assert told in judge_waiting([first(16, 8), first(16, 8 - kept, kept, waited=5)])


def test_a_search_that_waited_is_read_after_its_first_epoch_of_the_architecture() -> None:
    found = {one.name: one for one in read_first_epochs(SEARCHES)}
    warm, at_once = found["darts-first-c16-warm-seed0"], found["darts-c16-seed0"]
    assert (warm.waited, warm.skips, warm.convolutions) == (5, 5, 2)
    assert (at_once.waited, at_once.skips, at_once.convolutions, at_once.lead) == (0, 8, 0, None)
    assert "darts-paper" not in found and "darts-c16-n5-seed2" not in found  # the text's form; cells of five nodes


def test_nothing_is_told_without_two_widths_and_a_search_that_waited() -> None:
    waited = dataclasses.replace(first(16, 5), waited=5)
    assert list(write_first_epochs([first(5, 3), first(16, 8)])) == list(write_first_epochs([waited])) == []
    assert "The width does it" in "\n".join(write_first_epochs([first(5, 3), first(16, 8), waited]))
