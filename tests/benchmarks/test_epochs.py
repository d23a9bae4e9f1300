"""The benchmark of epochs runs at its smallest, and what it counts is what the descriptions say."""

import json
import subprocess
from pathlib import Path

import pytest

from sphynx.space.reference import ResNet18Design, account_of_resnet18
from sphynx.space.tally import Shape
from tests.warm_process import Warm

ROOT = Path(__file__).parents[2]


@pytest.mark.slow  # it trains, searches and places
def test_the_epoch_benchmark_runs_at_its_smallest(warm: Warm) -> None:
    flags = ["--quick", "--batch", "8", "--strategies", "gdas", "--device", "cpu", "--json"]
    command = [str(warm.programs / "python"), "-m", "benchmarks.bench_train", *flags]
    done = subprocess.run(command, cwd=ROOT, env=warm.environment, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    rows = {row["what"].split(",")[0]: row for row in found["rows"]}
    assert list(rows) == [
        "train sphynx C=1 D=3 single",
        "train sphynx C=1 D=3 paper",
        "train resnet18 w8",
        "search gdas",
        "place 3 candidates",
    ]
    assert all(row["epoch_seconds"] > 0 and row["times_floor"] > 0 for row in rows.values())
    # Backward passes take twice the forward pass, but the first convolution needs no gradient of its input.
    resnet = rows["train resnet18 w8"]
    flops = resnet["floor_flops_seconds"] * found["ceilings"]["flops_per_second"] / (32 * 8)
    macs = account_of_resnet18(ResNet18Design(8, Shape(3, 32, 32), 64, "small")).total.macs
    assert 0.95 * 6 * macs < flops < 6 * macs
