"""The benchmark's numbers exist, have the promised names and are positive. How large they are is not tested."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from benchmarks.core import everything, ring, seal, symmetric
from benchmarks.core.__main__ import core
from benchmarks.core.table import rate_rows, ring_rows
from tools.command import command_line
from typer.testing import CliRunner

from sphynx.bench.machine import best_seconds

RATES = {
    "aes_blocks_per_s",
    "garble_ands_per_s",
    "evaluate_ands_per_s",
    "garble_bound_ratio",
    "evaluate_bound_ratio",
    "ot_per_s",
    "ot_bytes_each",
    "ot_bound_ratio",
    "triples_per_s",
    "triples_bound_ratio",
}
RLWE = {
    f"rlwe_{name}_s" for name in ("product", "plaintext_ntt", "ntt_one_prime", "encrypt", "decrypt", "reply", "parse")
}
SEAL = {f"seal_{name}_s" for name in ("product", "plaintext_ntt", "encrypt", "decrypt", "add")}


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    return everything.measure_core(1)


def positive(value: object) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value) and value > 0


def test_rates_on_one_core_and_on_all(results: dict[str, Any]) -> None:
    for rates in (results, results["all_cores"]):
        assert {key for key in RATES if not positive(rates.get(key))} == set()
    assert results["ot_bytes_each"] == 3.875  # (32 - 1) bits: parameter 4, random choices
    assert [row["ot_parameter"] for row in results["ot_by_parameter"]] == [1, 2, 4, 8]


def test_rlwe_beside_seal(results: dict[str, Any]) -> None:
    pytest.importorskip("tenseal")
    for times in (results, *results["rlwe_by_ring_bits"]):
        assert {key for key in RLWE | SEAL if not positive(times.get(key))} == set()
        assert positive(times["product_speedup"])
    assert results["seal"].startswith("TenSEAL 0.")


def test_ring_beside_torch(results: dict[str, Any]) -> None:
    pytest.importorskip("torch")
    entries = results["ring_convolutions"]
    assert len(entries) == len(ring.SHAPES) * len(ring.WIDTHS)
    for entry in entries:
        for key in ("ring_conv_s", "torch_conv_s", "ring_macs_per_s", "ratio_to_torch"):
            assert positive(entry[key]), (entry["shape"], key)


def test_machine_is_described_and_all_is_json(results: dict[str, Any]) -> None:
    assert json.loads(json.dumps(results)) == results
    machine = results["machine"]
    assert machine["cores"] >= 1
    assert len(machine["load_average"]) == 3
    assert machine["aes_path"]
    assert machine["versions"]["numpy"]


def test_tables(results: dict[str, Any]) -> None:
    rows = list(rate_rows(results))
    assert {len(row) for row in rows} == {5}
    assert [row[4] for row in rows if row[0].startswith(("garbled", "evaluated"))] == [">= 0.65"] * 4
    assert len(list(ring_rows(results))) == len(ring.SHAPES)
    one_core = {**results, "all_cores": None}
    assert len(list(rate_rows(one_core))) == len(rows) - 5


@pytest.mark.parametrize(
    ("flags", "fault"), [(["--threads", "3"], "'3' is not one of 'all', '1'"), (["--repeats", "0"], "--repeats")]
)
def test_flags_are_checked(flags: list[str], fault: str) -> None:
    ran = CliRunner().invoke(command_line(core), flags)
    assert ran.exit_code == 2 and fault in ran.output


def test_the_command_prints_what_was_measured(results: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.core.__main__.measure_core", lambda *_, **__: results)
    ran = CliRunner().invoke(command_line(core), ["--json", "--repeats", "1"])
    assert ran.exit_code == 0 and json.loads(ran.stdout) == results


def test_absent_peers_are_null_and_said_so(monkeypatch: pytest.MonkeyPatch, results: dict[str, Any]) -> None:
    def absent(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr("importlib.import_module", absent)
    monkeypatch.setattr(seal, "installed_version", lambda _: None)
    times = seal.seal_times(4096, 1)
    assert times.keys() >= SEAL
    assert set(times.values()) == {None}
    assert "not installed" in seal.seal_peer()
    entries = ring.ring_times(ring.SHAPES[1], 1)
    assert all(entry["torch_conv_s"] is None and entry["ratio_to_torch"] is None for entry in entries)
    speedups = dict.fromkeys(f"{name}_speedup" for name in ("product", "plaintext_ntt", "encrypt", "decrypt"))
    alone = [{**row, **times, **speedups} for row in results["rlwe_by_ring_bits"]]
    assert "no TenSEAL" in {row[2] for row in rate_rows({**results, "rlwe_by_ring_bits": alone})}
    assert next(ring_rows({"ring_convolutions": entries}))[2] == "no torch"


def test_blocks_of_an_ot() -> None:
    # k = 1: 128 trees of two leaves, a block of 128 bits each; k = 8: 16 trees of 256 leaves; and two hashes.
    assert symmetric.sender_aes_blocks(1) == 4
    assert symmetric.sender_aes_blocks(8) == 34
    assert symmetric.sender_aes_blocks(3) == (42 * 8 + 4) / 128 + 2


def test_work_shorter_than_the_clock_still_has_a_rate() -> None:
    assert best_seconds(lambda: None, 3) > 0
