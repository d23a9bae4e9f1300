"""`sphynx bench private` has the promised keys. How fast things are is not tested."""

import json
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sphynx.bench import clear
from sphynx.bench.private import measure_private
from sphynx.bench.private_models import untrained_model
from sphynx.bench.results import BenchRun, ThroughputRun
from sphynx.cli.bench_options import print_rows
from sphynx.cli.main import app
from sphynx.units import bytes_text, seconds_text
from tests.bench.designs import small_file

KEPT = Path(__file__).parents[2] / "results" / "private"
KEYS = {
    "model",
    "relus",
    "backend",
    "link",
    "plaintext_s",
    "offline_s",
    "online_s",
    "offline_bytes",
    "online_bytes",
    "rounds",
    "peak_memory_bytes",
    "equal_to_oracle",
    "offline_p95_s",
    "online_p95_s",
    "ring_bits",
    "he_bytes",
    "online_bytes_per_relu",
    "layers",
    "timeline",
    "setup_s",
    "online_ratio",
    "total_ratio",
    "batch",
}


def test_rows_have_the_promised_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clear, "RUNS", 4)
    out = tmp_path / "rows.json"
    words = "bench private --backend gmw --reveal logits,label --repeat 1 --passes 2 --untrained"
    result = CliRunner().invoke(app, [*words.split(), small_file(tmp_path, "tiny", 2), "-o", str(out)])
    assert result.exit_code == 0, result.output
    saved = json.loads(out.read_text())
    assert saved["machine"]["versions"]["sphynx"] and saved["source"]["source_sha256"]
    row, label = saved["rows"]
    assert set(row) >= KEYS and row["repeats"] == 2
    assert (row["reveal"], label["reveal"]) == ("logits", "label") and label["equal_to_oracle"] is True
    assert label["online_bytes"] > row["online_bytes"] and "gmw, label" in result.output
    assert row["equal_to_oracle"] is True and row["relus"] == 2 * 64
    times = [row["torch_s"], row.get("onnxruntime_s")]
    assert row["plaintext_s"] == min(seconds for seconds in times if seconds is not None)
    assert (row.get("onnxruntime_s") is not None) == bool(find_spec("onnxruntime"))
    assert row["plaintext_s"] > 0 and row["total_ratio"] > row["online_ratio"] > 0
    for name, size in (("offline", row["offline_bytes"]), ("online", row["online_bytes"])):
        layers = [layer for layer in row["layers"] if layer["phase"] == name]
        assert sum(layer["sent_bytes"] + layer["received_bytes"] for layer in layers) == size
    assert {entry["party"] for entry in row["timeline"]} == {"server", "client"}
    assert all(entry["end_s"] - entry["start_s"] >= 0 for entry in row["timeline"])


def test_kinds_of_security_are_compared_in_a_table_of_their_own(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    kept = BenchRun.from_json(json.loads((KEPT / "streams.json").read_text()))
    one = kept.rows[0]
    other = replace(one, security="malicious-client", offline_bytes=2 * one.offline_bytes, offline_cpu_s=1.5)
    print_rows("title", replace(kept, rows=(one, other)))
    table = capsys.readouterr().out.partition("by security")[2]
    for row in (one, other):
        disk = row.bundle_bytes
        (line,) = (line for line in table.splitlines() if f" {row.security} " in line)
        cells = [cell.strip() for cell in line.strip("│ ").split("│")]
        assert cells[-2:] == [bytes_text(row.offline_bytes), f"{bytes_text(disk.server)} / {bytes_text(disk.client)}"]
        assert cells[5:7] == [seconds_text(row.online_cpu_s), seconds_text(row.offline_cpu_s)]
    print_rows("title", replace(kept, rows=(one,)))
    assert "by security" not in capsys.readouterr().out


@pytest.mark.slow
def test_networks_of_one_name_are_each_asked_their_own_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clear, "RUNS", 4)
    models = [untrained_model(small_file(tmp_path, f"depth{n}", n), "single", tmp_path / str(n)) for n in (2, 3)]
    same = [replace(model, name="same") for model in models]
    rows = measure_private(same, ["gmw"], {"loopback": None}, repeats=1, batch=1)
    assert [row.relus for row in rows] == [2 * 64, 3 * 64]
    assert all(row.equal_to_oracle for row in rows)


@pytest.mark.parametrize("file", sorted(KEPT.glob("*.json")), ids=lambda file: file.stem)
def test_kept_results_are_read_as_they_were_written(file: Path) -> None:
    kept = json.loads(file.read_text())
    kind = ThroughputRun if "inferences_per_s" in kept["rows"][0] else BenchRun
    run = kind.from_json(kept, where=file.name)
    assert len(run.rows) == len(kept["rows"]) and all(row.equal_to_oracle for row in run.rows)
    assert kind.from_json(run.to_json()) == run
    written = run.to_json()
    for before, after in zip(kept["rows"], written["rows"], strict=True):
        assert {key: after[key] for key in before} == before  # nothing that was kept is lost
    assert kept.get("fits") == written.get("fits")
