"""What cells and placements are ranked by: a short training on part of the training images, scored on the rest."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import torch

from sphynx.data.images import Data
from sphynx.network.model import design_fingerprint
from sphynx.space.design import Design
from sphynx.train.loop import DivergedError, Job
from sphynx.train.processes import Processes
from sphynx.train.recipe import Recipe
from sphynx.train.runs import train_seeds

HELD_OUT = 0.2


def retrainer(
    data: Data, recipe: Recipe, out: Path, *, seed: int, device: torch.device, quiet: bool, resume_command: str
) -> Callable[[Design], float]:
    """From a design to its held-out accuracy. The test images are left out of it; finished trainings are kept."""
    fitted, held_out = data.train.split(HELD_OUT, seed)
    part = dataclasses.replace(data, name=f"{data.name}, held out", train=fitted, test=held_out)

    def retrain(design: Design) -> float:
        job = Job(
            design, part, recipe, out / design_fingerprint(design), seed, resume=True, quiet=quiet,
            processes=Processes(device), resume_command=resume_command, scored_on="held-out",
        )  # fmt: skip
        try:
            return float(train_seeds(job)["accuracy"])
        except DivergedError:  # it has lost against any that learns
            return 0.0

    return retrain
