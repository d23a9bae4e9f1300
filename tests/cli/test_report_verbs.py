"""`sphynx report` as a user types it."""

import json
from pathlib import Path

import pytest

from sphynx.cli.main import main

RESULTS = Path(__file__).parents[2] / "results" / "cifar100"


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr("sys.argv", ["sphynx", *words])
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


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
