"""The page of estimates beside measurements, and what its rows are made of."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.beside import Beside, BesideRun, drift, mean_rates
from docs.make_estimates import page

from sphynx.bench.results import Machine, Source
from sphynx.program.cost.rates import REFERENCE, HeSeconds


def test_a_row_has_the_ratio_of_estimated_to_measured(tmp_path: Path) -> None:
    assert page(tmp_path / "none.json").endswith("Nothing was measured yet.\n")
    row = Beside("a", "gmw", "lan", "softspoken", 0.2, 0.02, 0.4, 0.25, 0.014, 0.36, 0.03, REFERENCE.to_json())
    rows = (row, replace(row, network="b", ot="silent", online_s=0.014))
    machine = Machine("x86_64", "Linux", 2, ("avx2",), "aesni", "avx2", (0.3, 0.2, 0.1), {})
    kept = tmp_path / "estimates.json"
    kept.write_text(json.dumps(BesideRun(machine, Source("c0ffee", "", wire=16), rows).to_json()))
    text = page(kept)
    assert "x86_64, 2 cores, load 0.3 at the start, commit c0ffee, wire 16.\n" in text
    assert "| online | 1 of 2 | 0.70 | 0.85 | 1.00 |\n" in text
    assert "| offline | 2 of 2 | 1.25 | 1.25 | 1.25 |\n" in text
    assert "| a | gmw | lan | 14.0 | 20.0 | 0.70 | 250 | 200 | 1.25 | 0.90 | 0.03 |\n" in text
    assert "| b | gmw, silent | lan | 14.0 | 14.0 | 1.00 | 250 | 200 | 1.25 | 0.90 | 0.03 |\n" in text


@pytest.mark.parametrize("factor", [0.5, 1.0, 1.2])
def test_drift_is_by_how_much_the_core_changed(factor: float) -> None:
    """The channel may change alone: it has no part in it but by its bytes."""
    he = HeSeconds(*(factor * seconds for seconds in vars(REFERENCE.he_small).values()))
    later = replace(REFERENCE, he_small=he, message_s=9.0)
    assert drift(REFERENCE, later) == pytest.approx(abs(factor - 1))
    assert mean_rates(REFERENCE, later).he_small.reply == pytest.approx((1 + factor) / 2 * REFERENCE.he_small.reply)
    assert mean_rates(REFERENCE, REFERENCE) == REFERENCE
