"""The course of a training run as a picture: loss, and accuracy on training and held-out images, over epochs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def draw_training(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    from matplotlib.figure import Figure

    epochs = [row["epoch"] for row in rows]
    figure = Figure(figsize=(8, 3.2))
    # By hand: to let matplotlib measure the words takes as long as to draw them.
    margins = {"left": 0.09, "right": 0.98, "bottom": 0.16, "top": 0.95, "wspace": 0.22}
    left, right = figure.subplots(1, 2, gridspec_kw=margins)
    left.plot(epochs, [row["loss"] for row in rows], color="tab:blue")
    left.set(xlabel="epoch", ylabel="training loss")
    right.plot(epochs, [100 * row["train_accuracy"] for row in rows], label="training images, augmented")
    held_out = [(row["epoch"], 100 * row["held_out_accuracy"]) for row in rows if "held_out_accuracy" in row]
    if held_out:
        right.plot(*zip(*held_out, strict=True), label="held-out images")
    right.set(xlabel="epoch", ylabel="accuracy, %")
    right.legend()
    for axes in (left, right):
        axes.grid(alpha=0.3)
    figure.savefig(path)
