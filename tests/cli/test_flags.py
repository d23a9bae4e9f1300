"""Flags that many verbs have are the same in all of them."""

from typing import Any

from sphynx.cli.verbs import verbs


def named(*names: str) -> list[tuple[str, Any]]:
    found = ((verb, option) for verb, command, context in verbs() for option in command.get_params(context))
    return [(verb, option) for verb, option in found if set(names) & set(option.opts)]


def test_json_is_a_flag_that_prints() -> None:
    found = named("--json")
    assert len(found) > 10
    assert [verb for verb, option in found if not option.is_flag] == []


def test_what_is_written_goes_to_out() -> None:
    found = named("-o", "--out", "--output")
    assert len(found) > 10
    assert [verb for verb, option in found if set(option.opts) != {"-o", "--out"}] == []
