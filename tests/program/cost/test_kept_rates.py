"""Rates survive in the user's cache, and nothing there can stop a client or an estimate."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from sphynx.program.cost.kept_rates import keep_rates, kept_rates, rates_file
from sphynx.program.cost.rates import REFERENCE


def test_rates_are_kept_and_a_damaged_file_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert kept_rates() is None
    keep_rates(REFERENCE)
    assert kept_rates() == REFERENCE
    rates_file().write_text('{"machine": "of an older version", "cores": 2, "ots_per_s": 1e6}')
    assert kept_rates() is None


@pytest.mark.parametrize(
    "place",
    [
        ("busy_cores",),
        ("gate_byte_s",),
        ("link_message_s",),
        ("gate",),
        ("square", "layer"),
        ("gc", "offline_layer"),
        ("gmw", "offline_layer"),
        ("he_small", "weight"),
        ("he_large", "used"),
        ("he_large", "transform"),
    ],
)
def test_a_machine_that_was_measured_before_there_was_a_rate_is_measured_again(
    place: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    keep_rates(replace(REFERENCE, busy_cores=1.0))
    assert kept_rates()
    kept = json.loads(rates_file().read_text())
    *outer, name = place
    del (kept["rates"][outer[0]] if outer else kept["rates"])[name]
    rates_file().write_text(json.dumps(kept))
    assert kept_rates() is None


def test_rates_of_other_work_are_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    keep_rates(REFERENCE)
    rates_file().write_text(json.dumps({**json.loads(rates_file().read_text()), "work": 16}))
    assert kept_rates() is None


def test_without_a_home_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", _no_home)
    keep_rates(REFERENCE)
    assert kept_rates() is None


def _no_home() -> Path:
    raise RuntimeError("Could not determine home directory.")
