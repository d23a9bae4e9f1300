"""Records: the JSON round trip, files of other versions, and faults that are all named."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sphynx.errors import InputError
from sphynx.record import Record
from sphynx.space.genotype import Genotype
from sphynx.space.published_cells import SPHYNX

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


@dataclass(frozen=True)
class Part(Record):
    name: str
    seconds: tuple[float, ...] = ()


@dataclass(frozen=True)
class Whole(Record):
    parts: tuple[Part, ...]
    by_name: Mapping[str, Part]
    count: int | None
    kind: Literal["a", "b"] = "a"
    cells: Genotype | None = None
    rest: Mapping[str, Any] = field(default_factory=dict)


PARTS = st.builds(Part, st.text(), st.lists(NUMBERS).map(tuple))


@given(
    st.builds(
        Whole,
        st.lists(PARTS, max_size=3).map(tuple),
        st.dictionaries(st.text(), PARTS, max_size=3),
        st.none() | st.integers(),
        st.sampled_from(["a", "b"]),
        st.none() | st.just(SPHYNX),
    )
)
def test_a_record_is_read_as_it_was_written(whole: Whole) -> None:
    assert Whole.from_json(whole.to_json()) == whole


def test_files_of_other_versions_are_read() -> None:
    newer = {"name": "one", "seconds": [1], "colour": "red"}
    assert Part.from_json(newer) == Part("one", (1.0,))
    assert Part.from_json({"name": "older"}) == Part("older")
    assert "cells" not in Whole((), {}, None).to_json() and Whole((), {}, None).to_json()["count"] is None


def test_all_faults_are_named_with_their_place() -> None:
    wrong = {"parts": [{"name": "one"}, {"name": 2}], "by_name": [], "kind": "c"}
    with pytest.raises(InputError) as refused:
        Whole.from_json(wrong, where="whole.json")
    message = str(refused.value)
    for part in (
        "whole.json",
        "parts: entry 1: name: expected text",
        "by_name: expected an object",
        "count is missing",
        "kind",
    ):
        assert part in message
    assert refused.value.remedy == "Make the file again."
    others: tuple[object, ...] = (None, [], "text")
    for other in others:
        with pytest.raises(InputError, match="expected an object"):
            Part.from_json(other)
    with pytest.raises(InputError, match="seconds: entry 0: expected a number"):
        Part.from_json({"name": "x", "seconds": [True]})
