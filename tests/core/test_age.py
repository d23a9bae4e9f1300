"""A core that was compiled before its sources changed is noticed."""

import os
import warnings
from pathlib import Path

import pytest

from sphynx.core.age import warn_if_older

HOUR_S = 3_600


@pytest.fixture
def compiled(tmp_path: Path) -> Path:
    file = tmp_path / "_native.so"
    file.touch()
    return file


def _source(folder: Path, compiled: Path, later_s: int) -> None:
    folder.mkdir(parents=True)
    file = folder / "party.cpp"
    file.touch()
    when = compiled.stat().st_mtime + later_s
    os.utime(file, (when, when))


def test_a_source_that_was_changed_later_is_told(compiled: Path, tmp_path: Path) -> None:
    _source(tmp_path / "core/gmw", compiled, HOUR_S)
    with pytest.warns(RuntimeWarning, match="older than its sources"):
        warn_if_older(compiled, tmp_path / "core")


def test_a_link_to_nothing_is_no_source(compiled: Path, tmp_path: Path) -> None:
    _source(tmp_path / "core", compiled, -HOUR_S)
    (tmp_path / "core/.#party.cpp").symlink_to("somebody@somewhere")  # as editors lock a file
    warn_if_older(compiled, tmp_path / "core")


@pytest.mark.parametrize(
    ("folder", "later_s"),
    [("core/gmw", -HOUR_S), ("core/tests", HOUR_S), ("elsewhere", HOUR_S)],
    ids=["built since", "not compiled in", "an installed package has no sources"],
)
def test_otherwise_nothing_is_said(compiled: Path, tmp_path: Path, folder: str, later_s: int) -> None:
    _source(tmp_path / folder, compiled, later_s)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_older(compiled, tmp_path / "core")
