"""The paper's runs in windows of time: the list, what goes to another machine, and the whole at its smallest."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from reproduction.experiments import EXPERIMENTS
from reproduction.gpu.__main__ import main
from reproduction.gpu.planned import SHORT_EPOCHS
from reproduction.gpu.runs import planned_runs
from reproduction.gpu.state import pack_results, pack_state, unpack
from reproduction.outcomes import SEARCHED, cells_of
from reproduction.scales import design_of

from sphynx.report.naming import DATA_SETS
from sphynx.run.progress import QUIET
from sphynx.run.work import Work
from sphynx.search.recipe import load_recipe
from sphynx.search.search import search_cells
from sphynx.train.recipe import load_recipe as load_training_recipe
from tests.search.test_runs import small_data

ROOT = Path(__file__).parents[2]


def test_every_row_that_can_be_run_is_planned(tmp_path: Path) -> None:
    """But for the largest networks of one figure, those with a teacher and those of a search."""
    runs = planned_runs()
    names = {run.name for run in runs}
    assert len(names) == len(runs) and all(run.needs in {"", *names} for run in runs)
    planned = {run.design(tmp_path) for run in runs if run.design and run.kind == "train" and not run.needs}
    missing = {
        f"{row.experiment} {row.label}"
        for experiment in EXPERIMENTS.values()
        for row in experiment.rows
        if row.data == "cifar100" and not row.distilled and not row.cells.startswith(SEARCHED)
        if design_of(row, *DATA_SETS["cifar100"], cells_of(row)) not in planned
    }
    assert missing == {f"relu-sharing {label}" for label in ("130K/156K", "200K/233K", "300K/311K")}
    for run in runs:
        if run.kind == "train":
            assert load_training_recipe(run.recipe, run.settings).epochs >= SHORT_EPOCHS


def test_a_search_goes_on_elsewhere_from_kernels_of_8_bits(tmp_path: Path) -> None:
    recipe = dataclasses.replace(load_recipe("smoke"), epochs=2, depth=2, nodes=4, supernet="released", channels=4)
    search_cells(small_data(), "darts-unrolled", recipe, tmp_path / "runs" / "cells", Work(voice=QUIET))
    out, there = tmp_path / "out", tmp_path / "there"
    pack_results(tmp_path / "runs", out)
    assert pack_state(tmp_path / "runs", out, [("cells", "search")], 10) != []
    assert not list(out.glob("state.*"))  # it is beyond the limit
    pack_state(tmp_path / "runs", out, [("cells", "search"), ("nothing", "train")], 1 << 20)
    unpack(out, there)
    before, after = (
        torch.load(folder / "cells" / "checkpoint.pt", weights_only=True)["state"]["learner"]
        for folder in (tmp_path / "runs", there)
    )
    for one, other in zip(before["strategy"]["parameters"], after["strategy"]["parameters"], strict=True):
        assert torch.equal(one, other)
    for name, weight in before["shared"]["network"].items():
        assert torch.allclose(weight, after["shared"]["network"][name], atol=float(weight.abs().max()) / 250)
    (there / "cells" / "result.json").unlink()
    assert search_cells(small_data(), "darts-unrolled", recipe, there / "cells", Work(voice=QUIET)).epochs == 2


@pytest.mark.slow
def test_a_window_at_its_smallest_and_the_next_elsewhere(tmp_path: Path) -> None:
    """A search and a training on other images; then one of the cells that were found; then nothing is left."""
    for split in ("train", "test"):
        save_packed(tmp_path / "data", split)
        save_packed(tmp_path / "tiny", split, side=64, classes=200)
    words = ["--data", str(tmp_path / "data"), "--tiny-imagenet", str(tmp_path / "tiny")]
    words += ["--smoke", "--device", "cpu", "--slots", "1"]
    for only in ("darts-c16-n5-seed2-8,short-tiny-c5-d5", "short-n5-d5"):  # the last needs the first
        run(*words, "--only", only, "--state", str(tmp_path / "here"), "--out", str(tmp_path / "out"))
        state = json.loads((tmp_path / "out" / "queue.json").read_text())
        assert sorted(state["finished"]) == sorted(only.split(",")) and state["failed"] == {} and state["left"] == []
    there = tmp_path / "there"
    there.mkdir()
    (there / "results.tgz").write_bytes((tmp_path / "out" / "results.tgz").read_bytes())
    again = ("--only", "darts-c16-n5-seed2-8,short-n5-d5,short-tiny-c5-d5", "--state", str(there))
    assert "nothing is left" in run(*words, *again, "--out", str(tmp_path / "out2"))


def test_a_name_that_no_run_has_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["gpu", "--only", "gdas,short-c5-d5-r01", "--list"])
    with pytest.raises(SystemExit):
        main()
    assert "no run is called gdas;" in capsys.readouterr().err


def run(*words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "reproduction.gpu", *words],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def save_packed(folder: Path, split: str, side: int = 32, classes: int = 100) -> None:
    """One image of noise for each class."""
    folder.mkdir(exist_ok=True)
    random = np.random.default_rng(0)
    files = []
    for _ in range(classes):
        file = io.BytesIO()
        Image.fromarray(random.integers(0, 256, (side, side, 3), dtype=np.uint8)).save(file, "png")
        files.append(np.frombuffer(file.getvalue(), np.uint8))
    offsets = np.cumsum([0, *map(len, files)])
    np.savez(folder / f"{split}0.npz", blob=np.concatenate(files), off=offsets, y=np.arange(classes), split=split)


def test_results_are_packed_whole_while_runs_replace_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = tmp_path / "runs" / "one" / "metrics.jsonl"
    metrics.parent.mkdir(parents=True)
    metrics.write_text("{}\n" * 9)
    add = tarfile.TarFile.addfile

    def add_late(tar: tarfile.TarFile, *given: Any) -> None:
        metrics.write_text("{}\n")
        add(tar, *given)

    monkeypatch.setattr(tarfile.TarFile, "addfile", add_late)
    pack_results(tmp_path / "runs", tmp_path / "out")
    unpack(tmp_path / "out", tmp_path / "there")
    assert (tmp_path / "there" / "one" / "metrics.jsonl").read_text() == "{}\n" * 9
