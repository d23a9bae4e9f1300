"""`python -m reproduction` as a user types it."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from reproduction.__main__ import app, command_again

from sphynx.cli.main import call
from tests.torch_threads import torch_threads

RESULTS = Path(__file__).parents[2] / "results" / "cifar100"


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr("sys.argv", ["reproduction", *words])
    try:
        call(app, command_again)
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def test_an_experiment_at_smoke_scale_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with torch_threads(1):
        assert run(monkeypatch, "run", "imagenet", "-o", str(tmp_path), "--device", "cpu") == 0
        shown = capsys.readouterr()
        assert "proves the path, not the claim" in shown.out
        assert "VGG11 needs images of 32x32" in shown.out
        models = {path: path.stat().st_mtime_ns for path in tmp_path.glob("runs/*/model.safetensors")}
        assert len(models) == 2  # ten networks, which at this scale are two different ones
        assert run(monkeypatch, "run", "imagenet", "-o", str(tmp_path), "--device", "cpu", "--json") == 0
    table = json.loads(capsys.readouterr().out)
    assert {path: path.stat().st_mtime_ns for path in models} == models  # nothing was trained again
    ours = [row["ours"] for row in table["rows"] if row["series"] != "VGG11"]
    assert [row["paper"]["accuracy"] for row in table["rows"]][:3] == [38.23, 51.85, 57.72]
    assert all(found["made_here"] and 0 <= found["accuracy"] <= 100 for found in ours)
    assert json.loads((tmp_path / "imagenet.json").read_text()) == table
    texts = [text.text or "" for text in ElementTree.parse(tmp_path / "imagenet.svg").iter()]
    assert any("Ours at smoke scale" in text for text in texts)


def test_names_and_unknown_names(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "run", "list", "--json") == 0
    names = json.loads(capsys.readouterr().out)
    assert {"relu-counts", "parameters", "cifar100", "placement-grid", "placement", "relu-sharing"} <= set(names)
    assert run(monkeypatch, "run", "list") == 0
    listed = [line for line in capsys.readouterr().out.splitlines() if "ours, not in the paper" in line]
    assert [line.split()[1] for line in listed] == ["likely-rivals", "random-cells", "search"]
    assert run(monkeypatch, "run", "cifar") == 2
    assert "remedy: Use one of relu-counts" in capsys.readouterr().err
    assert run(monkeypatch, "run", "cifar100", "--scale", "huge") == 2
    assert run(monkeypatch, "run", "relu-counts", "--scale", "full", "--no-run") == 2
    assert "Leave --scale and --no-run out." in capsys.readouterr().err


def test_the_papers_values_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("run", "all", "--no-run", "--scale", "full", "-o", str(tmp_path), "--results", str(RESULTS))
    assert run(monkeypatch, *words) == 0
    shown = capsys.readouterr().out
    assert "not run yet" in shown
    assert "The paper: Vanilla convolutions are slightly better." in shown
    assert "Our question, not a claim of the paper: Searched cells are better than random ones." in shown
    assert "Nothing was run at this scale" in shown and "full scale: the paper's networks" not in shown
    for estimate in ("Estimates: online latency", "SAFENet's"):
        assert shown.count(estimate) == 1  # by itself, and not again below its experiment
    figures, tables = ({file.stem for file in tmp_path.glob(f"*.{kind}")} for kind in ("svg", "json"))
    assert len(figures) == 18 and tables - figures == {"latency-estimates"} and figures <= tables


@pytest.mark.parametrize(("table", "rows"), [("relu-counts", 61), ("parameters", 6)])
def test_counts_are_printed_written_and_drawn(
    table: str, rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(monkeypatch, "run", table, "--json", "-o", "counts") == 0
    printed = json.loads(capsys.readouterr().out)
    assert len(printed) == rows
    assert json.loads((tmp_path / "counts" / f"{table}.json").read_text()) == printed
    assert run(monkeypatch, "run", table) == 0
    assert (tmp_path / "runs" / "reproduce" / f"{table}.svg").read_text().startswith("<svg")
    assert f"of {rows} rows agree" in capsys.readouterr().out


def test_estimated_latencies_are_printed_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "run", "latency-estimates", "--json", "-o", str(tmp_path)) == 0
    printed = json.loads(capsys.readouterr().out)
    assert set(printed) == {"imagenet", "cifar100"}
    assert json.loads((tmp_path / "latency-estimates.json").read_text()) == printed
