"""Rates survive in the user's cache, and nothing there can stop a client or an estimate."""

from dataclasses import replace
from pathlib import Path

import pytest

from sphynx.program.cost.kept_rates import keep_rates, kept_rates, rates_file
from sphynx.program.cost.rates import REFERENCE


def test_rates_are_kept_and_a_damaged_file_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert kept_rates() is None
    measured = replace(REFERENCE, busy_cores=1.0)
    keep_rates(measured)
    assert kept_rates() == measured
    keep_rates(REFERENCE)  # as machines were measured before there was this rate
    assert kept_rates() is None
    rates_file().write_text('{"machine": "of an older version", "cores": 2, "ots_per_s": 1e6}')
    assert kept_rates() is None


def test_without_a_home_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", _no_home)
    keep_rates(REFERENCE)
    assert kept_rates() is None


def _no_home() -> Path:
    raise RuntimeError("Could not determine home directory.")
