"""Nothing on the wire changes unseen: both backends, gates, checked clients, offline and online, both directions, held
against what this version of the wire has put there since it was made. On every path of the core, with one thread and
with several."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from tests.protocol.transcripts import CASES, KEPT, MADE, transcript

from sphynx.core import _native
from sphynx.protocol.channel import WIRE_VERSION


@pytest.fixture(params=[("fastest", 1), ("portable", 3)], ids="{0[0]}".format)
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    """How many, on one path and the other."""
    path, count = request.param
    _native.force_portable_for_tests(path == "portable")
    yield count
    _native.force_portable_for_tests(False)


@pytest.mark.parametrize("case", [case for case in CASES if case not in MADE])
def test_the_wire_is_that_of_its_version(case: str, threads: int) -> None:
    compare(case, threads)


@pytest.mark.parametrize("case", MADE)
@pytest.mark.parametrize("path", ["fastest", pytest.param("portable", marks=pytest.mark.slow)])
def test_so_it_is_with_silent_ots(case: str, path: str) -> None:
    """Millions of hashes: on the portable path they take their time."""
    _native.force_portable_for_tests(path == "portable")
    try:
        compare(case, threads=2)
    finally:
        _native.force_portable_for_tests(False)


def compare(case: str, threads: int) -> None:
    assert KEPT.is_file(), f"version {WIRE_VERSION} of the wire has no transcript: python -m tests.protocol.transcripts"
    kept, found = json.loads(KEPT.read_text())[case], transcript(case, threads)
    changed = [f"{direction}, {step}" for direction in kept for step in (set(found[direction]) ^ set(kept[direction]))]
    assert found == kept, f"the wire changed without its version (WIRE_VERSION): {sorted(changed)}"
