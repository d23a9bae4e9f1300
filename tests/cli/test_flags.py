"""Flags that many verbs have are the same in all of them."""

from functools import cache
from typing import Any, get_args

import pytest
from typer.testing import CliRunner

from sphynx.cli.main import app
from sphynx.cli.verbs import choices_of, kind_of, verbs
from sphynx.search.choices import StrategyName


def options(*names: str) -> list[tuple[str, Any, Any]]:
    """Verb, its command, and the option."""
    return [(verb, command, option) for verb, command, option in all_options() if set(names) & set(option.opts)]


@cache
def all_options() -> list[tuple[str, Any, Any]]:
    return [(verb, command, option) for verb, command, context in verbs() for option in command.get_params(context)]


def named(*names: str) -> list[tuple[str, Any]]:
    return [(verb, option) for verb, _, option in options(*names)]


def test_json_is_a_flag_that_prints() -> None:
    found = named("--json")
    assert len(found) > 10
    assert [verb for verb, option in found if not option.is_flag] == []


def test_what_is_written_goes_to_out() -> None:
    found = named("-o", "--out", "--output")
    assert len(found) > 10
    assert [verb for verb, option in found if set(option.opts) != {"-o", "--out"}] == []


@pytest.mark.parametrize(
    ("flag", "verb_count"),
    [
        ("--seed", 3),
        ("--recipe", 3),
        ("--resume", 3),
        ("--candidates", 2),
        ("--split", 3),
    ],
)
def test_a_flag_means_the_same_everywhere(flag: str, verb_count: int) -> None:
    """One kind of value, one default, and the same least value where it is a number."""
    found = {verb: (kind_of(command, option), option.default, option.min) for verb, command, option in options(flag)}
    assert len(found) >= verb_count
    assert len(set(found.values())) == 1, found


def test_words_to_choose_from_are_choices() -> None:
    """A flag for which the library has a list of words refuses all others by itself."""
    words = ("--stem", "--balancing", "--conv-stack", "--convolution", "--borders", "--family", "--strategy")
    for flag in (*words, "--candidates", "--split", "--stage", "--method"):
        assert options(flag), flag
        assert not [verb for verb, command, option in options(flag) if not choices_of(command, option)], flag


def test_the_strategies_are_those_that_there_are() -> None:
    from sphynx.search.strategies import STRATEGIES

    assert get_args(StrategyName) == tuple(STRATEGIES)


def test_long_work_says_more_or_nothing() -> None:
    long = {"demo", "design", "search cells", "search placement", "search relus", "train", "check", "report"}
    long |= {"bench private", "bench throughput", "reduce"}
    for flag in ("-v", "-q"):
        assert {verb.removeprefix("sphynx ") for verb, _ in named(flag)} == long


def test_help_is_also_h() -> None:
    for words in (["-h"], ["plan", "-h"], ["bench", "-h"], ["bench", "private", "-h"]):
        shown = CliRunner().invoke(app, words)
        assert shown.exit_code == 0 and "--help" in shown.output and "Usage" in shown.output
