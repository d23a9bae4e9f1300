"""Results of `sphynx bench throughput` and `benchmarks.scaling` on a page."""

import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks.lines import fits

from sphynx.bench.results import BenchRow
from sphynx.errors import InputError
from sphynx.report.page import make_report
from sphynx.report.sources import read_sources
from sphynx.run.environment import describe_environment
from tests.report.inputs import private_row

MACHINE = {"architecture": "made-up", "cores": 2}


def scaling_json(rows: list[dict[str, Any]]) -> dict[str, Any]:
    lines = fits([BenchRow.from_json(row) for row in rows])
    return {"machine": MACHINE, "rows": rows, "fits": [line.to_json() for line in lines]}


def test_throughput_is_a_table_of_its_own(tmp_path: Path) -> None:
    row = {
        "model": "first",
        "backend": "gmw",
        "link": "lan",
        "clients": 4,
        "inferences_per_s": 3.21,
        "latency_s": 1.25,
        "latency_p95_s": 1.5,
        "online_s": 0.1,
        "bytes_per_inference": 20_000_000,
        "equal_to_oracle": True,
        "relus": 25_600,
        "ring_bits": 32,
        "seconds": 20.0,
        "inferences": 64,
        "offline_s": 1.15,
        "online_p95_s": 0.2,
        "offline_bytes": 19_000_000,
        "online_bytes": 1_000_000,
        "server_cpu_s": None,
        "client_cpu_s": 0.5,
        "server_peak_memory_bytes": None,
        "per_client": [],
    }
    file = tmp_path / "throughput.json"
    file.write_text(json.dumps({"machine": MACHINE, "rows": [row]}))
    page = make_report(read_sources([file]), describe_environment())
    assert "per second" in page.html and "3.21" in page.html and "made-up" in page.html
    assert not page.charts  # a loaded server's latencies are not drawn as a network's own


def test_scaling_is_a_chart_with_its_lines(tmp_path: Path) -> None:
    rows = [
        private_row(f"{relus} ReLUs", relus=relus, online_s=relus * 2e-5 + 0.1) for relus in (10_000, 20_000, 30_000)
    ]
    results = scaling_json(rows)
    file = tmp_path / "scaling.json"
    file.write_text(json.dumps(results))
    page = make_report(read_sources([file]), describe_environment())
    assert [chart.id for chart in page.charts] == ["scaling-0"]
    assert "0.100 s + 20.00 µs x ReLUs, R² 1.000" in page.html
    del results["fits"][0]["s_per_relu"]
    file.write_text(json.dumps(results))
    with pytest.raises(InputError, match="fits: entry 0: s_per_relu is missing"):
        read_sources([file])


def test_scaling_without_all_its_parts_is_refused(tmp_path: Path) -> None:
    rows = [private_row("n", relus=relus) for relus in (10_000, 20_000)]
    whole = scaling_json(rows)
    file = tmp_path / "scaling.json"
    first = {**whole["fits"][0], "intercept_s": "none"}
    wrongs: tuple[dict[str, object], ...] = (
        {"rows": []},
        {"machine": "words"},
        {"fits": whole["fits"][1:]},
        {"fits": [first, *whole["fits"][1:]]},
    )
    for wrong in wrongs:
        file.write_text(json.dumps({**whole, **wrong}))
        with pytest.raises(
            InputError, match=r"lacks rows or lines|machine: expected an object|intercept_s: expected a number"
        ):
            read_sources([file])
