"""`sphynx reproduce` and `sphynx report` as a user types them."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch

from sphynx.cli.main import main

RESULTS = Path(__file__).parents[2] / "results" / "cifar100"


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr("sys.argv", ["sphynx", *words])
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def test_an_experiment_at_smoke_scale_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        assert run(monkeypatch, "reproduce", "imagenet", "-o", str(tmp_path), "--device", "cpu") == 0
        shown = capsys.readouterr()
        assert "proves the path, not the claim" in shown.out
        assert "VGG11 needs images of 32x32" in shown.out
        models = {path: path.stat().st_mtime_ns for path in tmp_path.glob("runs/*/model.safetensors")}
        assert len(models) == 2  # ten networks, which at this scale are two different ones
        assert run(monkeypatch, "reproduce", "imagenet", "-o", str(tmp_path), "--device", "cpu", "--json") == 0
    finally:
        torch.set_num_threads(threads)
    table = json.loads(capsys.readouterr().out)
    assert {path: path.stat().st_mtime_ns for path in models} == models  # nothing was trained again
    ours = [row["ours"] for row in table["rows"] if row["series"] != "VGG11"]
    assert [row["paper"]["accuracy"] for row in table["rows"]][:3] == [38.23, 51.85, 57.72]
    assert all(found["made_here"] and 0 <= found["accuracy"] <= 100 for found in ours)
    assert json.loads((tmp_path / "imagenet.json").read_text()) == table
    texts = [text.text or "" for text in ElementTree.parse(tmp_path / "imagenet.svg").iter()]
    assert any("Ours at smoke scale" in text for text in texts)


def test_names_and_unknown_names(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "reproduce", "list", "--json") == 0
    names = json.loads(capsys.readouterr().out)
    assert {"relu-counts", "parameters", "cifar100", "placement-grid", "placement", "relu-sharing"} <= set(names)
    assert run(monkeypatch, "reproduce", "cifar") == 2
    assert "remedy: Use one of relu-counts" in capsys.readouterr().err
    assert run(monkeypatch, "reproduce", "cifar100", "--scale", "huge") == 2
    assert run(monkeypatch, "reproduce", "relu-counts", "--scale", "full", "--no-run") == 2
    assert "Leave --scale and --no-run out." in capsys.readouterr().err


def test_the_papers_values_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("reproduce", "all", "--no-run", "--scale", "full", "-o", str(tmp_path), "--results", str(RESULTS))
    assert run(monkeypatch, *words) == 0
    shown = capsys.readouterr().out
    assert "not run yet" in shown
    assert "Nothing was run at this scale" in shown and "full scale: the paper's networks" not in shown
    for estimate in ("Estimates: online latency", "SAFENet's"):
        assert shown.count(estimate) == 1  # by itself, and not again below its experiment
    figures, tables = ({file.stem for file in tmp_path.glob(f"*.{kind}")} for kind in ("svg", "json"))
    assert len(figures) == 16 and tables - figures == {"latency-estimates"} and figures <= tables


def test_report_of_kept_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page, figures, kept = tmp_path / "deep" / "report.html", tmp_path / "figures", RESULTS / "paper-80.json"
    assert run(monkeypatch, "report", str(kept), "-o", str(page), "--figures", str(figures), "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert "pareto-relus-cifar100" in said["charts"]
    assert page.read_text().startswith("<!doctype html>")
    assert all(Path(path).exists() for path in said["written"])
    assert run(monkeypatch, "report", str(tmp_path / "none.json")) == 2
