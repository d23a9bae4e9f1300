"""Reduced networks measured in one run, by channel and by value, exactly; a second call measures no more."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from reproduction.reduced_latency import Latencies, main

import sphynx
from sphynx.cli.bench_options import describe_run
from sphynx.errors import InputError
from sphynx.reduce.results import REDUCTION, Reduced, ReduceResult
from sphynx.space.files import AnyDesign
from tests.compiler.test_reduced import STREAM, with_random_letters, with_random_values


@pytest.mark.slow
def test_the_table_is_made_in_one_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs, out = tmp_path / "runs", tmp_path / "out.json"
    keep(runs / "channels-50k", with_random_letters(STREAM, "ri0").design)
    keep(runs / "channels-50k-seed1", with_random_letters(STREAM, "ri0").design)
    keep(runs / "autorep-50k", with_random_values(STREAM, "ris").design)
    words = [str(runs), "-o", str(out), "--link", "loopback", "--repeat", "1"]
    assert main(words) == 0
    measured = json.loads(out.read_text())
    first, second = measured["networks"]
    assert (first["names"], second["names"]) == (["autorep-50k"], ["channels-50k", "channels-50k-seed1"])
    assert first["squares"] > 0 == second["squares"]
    assert {row["backend"] for row in first["rows"]} == {"gmw", "gc"}
    assert all(row["equal_to_oracle"] and row["offline_s"] > 0 for one in (first, second) for row in one["rows"])
    assert str(tmp_path) not in out.read_text()
    capsys.readouterr()
    assert main(words) == 0 and json.loads(out.read_text()) == measured
    printed = capsys.readouterr().out
    assert "### GMW over loopback" in printed and printed.count("| autorep-50k |") == 2


@pytest.mark.slow
def test_trained_weights_are_measured_once_they_are_there(tmp_path: Path) -> None:
    """Trained ones need a narrower ring; a row with random weights gives way to them."""
    runs, out = tmp_path / "runs", tmp_path / "out.json"
    sphynx.train_network(replace(STREAM, classes=10), "digits", out=runs / "teacher", settings={"epochs": 1})
    words = [str(runs), "-o", str(out), "--link", "loopback", "--repeat", "1"]
    assert main(words) == 0
    random = Latencies.from_json(json.loads(out.read_text())).networks
    assert main([*words, "--data", "digits"]) == 0
    trained = Latencies.from_json(json.loads(out.read_text())).networks
    assert [one.trained for one in (*random, *trained)] == [False, True]
    assert trained[0].rows[0].ring_bits < random[0].rows[0].ring_bits
    assert main(words) == 0 and Latencies.from_json(json.loads(out.read_text())).networks == trained


def test_rows_of_two_versions_are_not_mixed(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    machine, source = describe_run()
    out.write_text(json.dumps(Latencies(machine, replace(source, source_sha256="another")).to_json()))
    with pytest.raises(InputError, match="another version"):
        main([str(tmp_path), "-o", str(out)])


def keep(folder: Path, design: AnyDesign) -> None:
    folder.mkdir(parents=True)
    design.save(folder / "design.json")
    counts = design.counts  # type: ignore[union-attr]
    one = Reduced("snl", counts, 0.7, 0.7, 1.0)
    (folder / REDUCTION).write_text(json.dumps(ReduceResult(100, 200, 0.8, (one,)).to_json()))
