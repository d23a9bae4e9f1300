"""Runs are watched as they grow: how far, how long still, which cells changed; from real run folders."""

import io
import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from sphynx.errors import InputError
from sphynx.report.live.page import live_page
from sphynx.report.live.runs import Live, changes, read_live
from sphynx.report.live.terminal import BLOCKS, live_view, sparkline
from sphynx.space.design import Design
from sphynx.space.genotype import Genotype
from sphynx.space.published_cells import SPHYNX
from sphynx.space.tally import Shape
from tests.warm_process import Warm


def shown(live: Live) -> str:
    console = Console(width=160, record=True, file=io.StringIO())
    console.print(live_view(live))
    return console.export_text()


def grown(run: Path, to: Path, epochs: int, total: int) -> Path:
    """A copy of a finished run as it was after some of its epochs: `total` is what it then expects."""
    shutil.copytree(run, to)
    for result in ("result.json", "beta.json", "genotype.json"):
        (to / result).unlink(missing_ok=True)
    config = json.loads((to / "config.json").read_text())
    config["recipe"]["epochs"] = total
    (to / "config.json").write_text(json.dumps(config))
    rows = [json.loads(line) for line in (to / "metrics.jsonl").read_text().splitlines()]
    lines = [{**rows[number % len(rows)], "epoch": number, "seconds": 4.0} for number in range(epochs)]
    (to / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return to


def test_the_time_left_follows_from_the_last_epochs(runs: Path, tmp_path: Path) -> None:
    run = grown(runs / "first", tmp_path / "run", 6, 10)
    written = (run / "metrics.jsonl").stat().st_mtime
    live = read_live(run, written)
    assert not live.finished and (len(live.current.rows), live.current.epochs) == (6, 10)
    assert live.seconds_left == pytest.approx(16.0)  # 4 epochs of 4 seconds
    assert read_live(run, written + 3).seconds_left == pytest.approx(13.0)
    assert read_live(run, written + 99).seconds_left == 0.0  # longer than ever: nobody knows
    with (run / "metrics.jsonl").open("a") as file:
        file.write('{"epoch": 6, "lo')  # being written
    assert len(read_live(run).current.rows) == 6
    text, page = shown(live), live_page(live, 2.0)
    assert "epoch 6 of 10" in text and "16.0 s left" in text and "train accuracy" in text
    assert '<meta http-equiv="refresh" content="2.0">' in page and 'id="loss"' in page and "16.0 s" in page


def test_numbers_that_are_not_finite_are_left_out(runs: Path, tmp_path: Path) -> None:
    run = grown(runs / "first", tmp_path / "run", 3, 10)
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    for row, loss, beta in zip(rows, (2.5, float("nan"), float("inf")), (0.25, 0.5, float("nan")), strict=True):
        row.update(loss=loss, tau=float("nan"), beta_hat=[beta, 0.125])
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    live = read_live(run)
    curves = live.current.curves()
    assert curves["loss"] == [2.5] and "tau" not in curves
    assert list(live.current.probabilities().values()) == [[0.25, 0.5], [0.125, 0.125]]
    assert "2.5" in shown(live) and 'id="beta"' in live_page(live, 2.0)


def test_a_run_that_has_not_begun_is_waited_for_and_a_finished_one_ends(runs: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no run in the folder"):
        read_live(tmp_path)
    early = grown(runs / "first", tmp_path / "early", 0, 10)
    assert read_live(early).seconds_left is None and "No epoch has ended" in shown(read_live(early))
    done = read_live(runs / "first")
    assert done.finished and "finished" in shown(done) and "http-equiv" not in live_page(done, 2.0)


def test_cells_change_before_ones_eyes(runs: Path, tmp_path: Path) -> None:
    run = grown(runs / "cells", tmp_path / "cells", 2, 5)
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    found = Genotype.from_json(rows[0]["genotype"])
    (first, second), *others = found.normal
    operation = first.operation
    changed = first._replace(operation="conv3" if operation != "conv3" else "conv5")
    rows[1]["genotype"] = replace(found, normal=((changed, second), *others)).to_json()
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    live = read_live(run)
    ((epoch, where, what),) = changes(live.current.cells())
    assert (epoch, where) == (2, "normal, node 2") and operation in what and " -> " in what
    text, page = shown(live), live_page(live, 2.0)
    assert "normal cell now" in text and f"epoch 2: {where}" in text
    assert page.count('class="cell"') == 2 and "Changed last" in page


def test_candidates_are_named(runs: Path, tmp_path: Path) -> None:
    live = read_live(grown(runs / "places", tmp_path / "places", 3, 5))
    names = list(live.current.probabilities())
    assert names[0].startswith("(") and names[0] in shown(live) and 'id="beta"' in live_page(live, 2.0)


def test_curves_of_one_line() -> None:
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7]) == BLOCKS
    assert sparkline([3.0, 3.0]) == BLOCKS[0] * 2 and len(sparkline(list(range(1000)), 40)) == 40
    assert sparkline(list(range(1000)), 40)[0] == BLOCKS[0] and sparkline(list(range(1000)), 40)[-1] == BLOCKS[-1]


def test_a_training_is_watched_from_another_process(tmp_path: Path, warm: Warm) -> None:
    Design(SPHYNX, 1, 2, (0, 1), Shape(1, 8, 8), 10, conv_stack="single").save(tmp_path / "design.json")
    flags = ["--recipe", "smoke", "--epochs", "2", "--batch-size", "256", "--out", "run", "-q"]
    command = [str(warm.programs / "sphynx"), "train", "design.json", "--data", "digits", *flags]
    with subprocess.Popen(command, cwd=tmp_path, env=warm.environment) as train:
        seen = warm.sphynx("report", "run", "--live", "--every", "0.2", "-o", "watch.html", cwd=tmp_path)
        assert train.wait(240) == 0
    assert seen.returncode == 0, seen.stderr
    assert "epoch 2 of 2" in seen.stdout and "finished" in seen.stdout
    assert "run, finished" in (tmp_path / "watch.html").read_text()
