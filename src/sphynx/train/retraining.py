"""What cells and placements are ranked by: a short training on part of the training images, scored on the rest."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import torch

from sphynx.data.images import Data
from sphynx.network.model import design_fingerprint
from sphynx.space.design import Design
from sphynx.train.loop import Job
from sphynx.train.processes import Processes
from sphynx.train.recipe import Recipe
from sphynx.train.runs import train_seeds

HELD_OUT = 0.2


def retrainer(
    data: Data, recipe: Recipe, out: Path, *, seed: int, device: torch.device, quiet: bool
) -> Callable[[Design], float]:
    """From a design to its held-out accuracy. The test images are left out of it; finished trainings are kept."""
    fitted, held_out = data.train.split(HELD_OUT, seed)
    part = dataclasses.replace(data, name=f"{data.name}, held out", train=fitted, test=held_out)

    def retrain(design: Design) -> float:
        folder = out / design_fingerprint(design)
        job = Job(
            design, part, recipe, folder, seed, resume=True, quiet=quiet, processes=Processes(device),
            resume_command="the same command with --resume auto",
        )  # fmt: skip
        return float(train_seeds(job)["accuracy"])

    return retrain
