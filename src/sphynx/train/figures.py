"""The course of a training run as a picture: loss, and accuracy on training and held-out images, over epochs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sphynx.svg.charts import WIDE, Point, Series, over_epochs, stacked

LOSS = {"loss": "training loss"}
ACCURACIES = {"train_accuracy": "training images, augmented", "held_out_accuracy": "held-out images"}


def draw_training(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw losses and accuracies over epochs; draw nothing where no epoch was trained."""
    if not rows:
        return
    panels = [
        ("Loss", over_epochs("Loss", _series(rows, LOSS), "training loss", WIDE)),
        ("Accuracy", over_epochs("Accuracy", _series(rows, ACCURACIES, 100), "accuracy, %", WIDE)),
    ]
    path.write_text(stacked("Training", panels, WIDE).to_svg(), encoding="utf-8")


def _series(rows: Sequence[Mapping[str, Any]], names: Mapping[str, str], factor: float = 1) -> list[Series]:
    series = []
    for number, (key, name) in enumerate(names.items()):
        values = [(row["epoch"], factor * row[key]) for row in rows if key in row]
        points = [Point(epoch, value, f"epoch {epoch}: {value:.4g}") for epoch, value in values]
        if points:
            series.append(Series(name, points, f"s{number}", marked=len(points) == 1))
    return series
