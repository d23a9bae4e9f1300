"""The list of runs on the paper's page: each that is planned beyond the first experiments, kept ones by their files."""

from __future__ import annotations

import dataclasses
import json
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from reproduction.gpu.runs import planned_runs
from reproduction.what_ran import PARTS, seconds_of, write_what_ran

RESULTS = Path(__file__).parents[2] / "results"
PLANNED = {run.name: run for run in planned_runs()}


def test_each_pattern_names_a_run_and_no_run_is_told_twice() -> None:
    for part in PARTS:
        for pattern in part.runs:
            assert any(fnmatchcase(name, pattern) for name in PLANNED), pattern
    for name in PLANNED:
        assert sum(any(fnmatchcase(name, pattern) for pattern in part.runs) for part in PARTS) <= 1, name


def test_what_is_planned_and_not_kept_is_told() -> None:
    told = "\n".join(write_what_ran(RESULTS))
    unkept = {name for name, run in PLANNED.items() if seconds_of(run, RESULTS) is None}
    rows_of_figures = {"short-c7-d10-r05", "short-c10-d10-r05", "short-c15-d15-r26"}  # of cifar100: too short to decide
    assert {name for name in unkept if f"`{name}`" not in told} == rows_of_figures


def test_minutes_are_those_of_the_kept_files(tmp_path: Path) -> None:
    search = PLANNED["darts-c5-seed2-15"]
    assert seconds_of(search, tmp_path) is None
    file = tmp_path / "search" / f"{search.place}.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"metrics": [{"seconds": 10.0}] * 20}))
    assert seconds_of(search, tmp_path) == pytest.approx(150)  # of 15 epochs
    assert seconds_of(dataclasses.replace(search, stop_after=50), tmp_path) is None  # which has gone on for 20 alone
