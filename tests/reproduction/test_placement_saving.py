"""Algorithm 1's minutes beside the grid's, from runs of both."""

import json
from pathlib import Path

import pytest
import torch
from reproduction.experiments import EXPERIMENTS
from reproduction.placement_saving import Saving, savings
from reproduction.reproduce import DataSets, Reproduction
from reproduction.scales import SCALES

from sphynx.run.progress import QUIET
from sphynx.train.processes import Processes
from tests.data.layouts import write_classes


def test_the_ratio_counts_the_training_of_the_choice() -> None:
    saving = Saving("D=8", 15, search_minutes=10.0, training_minutes=10.0, grid_minutes=150.0)
    assert saving.ratio == saving.claimed_ratio == 7.5  # as the paper assumes: a search is as long as a training


def test_both_searches_run_and_their_minutes_are_kept(tmp_path: Path) -> None:
    for split in ("train", "val"):
        write_classes(tmp_path / "images" / split, n=4, size=32)
    scale = SCALES["smoke"]
    data = DataSets({"": str(tmp_path / "images")}, scale)
    out = tmp_path / "out"
    reproduction = Reproduction(scale, data, out, processes=Processes(torch.device("cpu")), voice=QUIET)
    (saving,) = savings(reproduction.run(EXPERIMENTS["placement-grid"]))
    assert (saving.series, saving.candidates, saving.claimed_ratio) == ("D=5", 6, 3)
    minutes = [json.loads(file.read_text())["minutes"] for file in (out / "runs").glob("*/result.json")]
    assert len(minutes) == 6
    assert saving.grid_minutes == pytest.approx(sum(minutes))
    assert saving.training_minutes in minutes
    (beta,) = (json.loads(file.read_text()) for file in (out / "places").glob("*/beta.json"))
    assert saving.search_minutes == beta["minutes"] > 0
