"""Estimate what training the paper's ImageNet networks would take, which was not done: hours of one GPU.

Multiplications per image are counted. Their rate is that of a training epoch of CIFAR-100 (results/speed), once of the
25.6K Sphynx network and once of ResNet18: small maps fill a GPU badly, so the first is a slow guess for larger ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reproduction.experiments import EXPERIMENTS, Row
from reproduction.outcomes import cells_of
from reproduction.scales import SCALES, design_of
from sphynx.report.naming import DATA_SETS
from sphynx.space.json_file import read_json
from sphynx.space.reference import ResNet18Design

SPEED = "speed/train-h200.json"
BATCH = 512
EPOCH_IMAGES, IMAGENET_IMAGES = 50_000, 1_281_167
SPHYNX, RESNET = "train sphynx C=5 D=5 paper", "train resnet18 w64"


@dataclass(frozen=True)
class ImageNetCost:
    networks: int
    epochs: int
    fewest_hours: float  # by ResNet18's rate for all
    most_hours: float  # Sphynx networks by the rate of the 25.6K network


def imagenet_cost(results: Path) -> ImageNetCost:
    """Sum over one seed of each network of the paper's table, by its own recipe."""
    measured = read_json(results / SPEED)["rows"]
    image, classes = DATA_SETS["cifar100"]
    resnet18 = ResNet18Design(64, image, classes, "small").account.total.macs
    fast = _measure_macs_per_s(resnet18, RESNET, measured)
    slow = _measure_macs_per_s(_count_macs(EXPERIMENTS["cifar100"].rows[0]), SPHYNX, measured)
    rows = EXPERIMENTS["imagenet"].rows
    epochs = SCALES["full"].recipe(rows[0]).epochs
    images = IMAGENET_IMAGES * epochs
    return ImageNetCost(
        len(rows),
        epochs,
        sum(_count_macs(row) * images / fast for row in rows) / 3600,
        sum(_count_macs(row) * images / (slow if row.network == "sphynx" else fast) for row in rows) / 3600,
    )


def _count_macs(row: Row) -> int:
    """Count the multiplications of one image, forward."""
    return design_of(row, *DATA_SETS[row.data], cells_of(row)).account.total.macs


def _measure_macs_per_s(macs: int, what: str, measured: list[dict[str, Any]]) -> float:
    """Divide forward multiplications by the seconds of a training epoch, which has the backward pass too."""
    (row,) = (row for row in measured if (row["what"], row["batch"]) == (what, BATCH))
    return macs * EPOCH_IMAGES / float(row["epoch_seconds"])
