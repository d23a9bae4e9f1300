"""Reduced networks measured in one run, by channel and by value, exactly; a second call measures no more."""

import json
from pathlib import Path

import pytest
from reproduction.reduced_latency import main

from sphynx.reduce.results import REDUCTION, Reduced, ReduceResult
from sphynx.space.files import AnyDesign
from tests.compiler.test_reduced import STREAM, with_random_letters, with_random_values


@pytest.mark.slow
def test_the_table_is_made_in_one_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs, out = tmp_path / "runs", tmp_path / "out.json"
    keep(runs / "channels-50k", with_random_letters(STREAM, "ri0").design)
    keep(runs / "autorep-50k", with_random_values(STREAM, "ris").design)
    words = [str(runs), "-o", str(out), "--link", "loopback", "--repeat", "1"]
    assert main(words) == 0
    measured = json.loads(out.read_text())
    assert [one["name"] for one in measured] == ["autorep-50k", "channels-50k"]
    assert measured[0]["squares"] > 0 == measured[1]["squares"]
    assert all(row["equal_to_oracle"] and row["offline_s"] > 0 for one in measured for row in one["rows"].values())
    capsys.readouterr()
    assert main(words) == 0 and json.loads(out.read_text()) == measured
    assert "| autorep-50k |" in capsys.readouterr().out


def keep(folder: Path, design: AnyDesign) -> None:
    folder.mkdir(parents=True)
    design.save(folder / "design.json")
    counts = design.counts  # type: ignore[union-attr]
    one = Reduced("snl", counts, 0.7, 0.7, 1.0)
    (folder / REDUCTION).write_text(json.dumps(ReduceResult(100, 200, 0.8, (one,)).to_json()))
