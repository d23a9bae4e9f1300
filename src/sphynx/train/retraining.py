"""What cells and placements are ranked by: a short training on part of the training images, scored on the rest.

out/N-epochs/FINGERPRINT   one training: a design's, in one round of a ranking
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import torch

from sphynx.data.images import Data
from sphynx.network.model import design_fingerprint
from sphynx.space.design import Design
from sphynx.train.loop import DivergedError, Job
from sphynx.train.order import with_epochs
from sphynx.train.processes import Processes
from sphynx.train.recipe import Recipe
from sphynx.train.runs import train_seeds

HELD_OUT = 0.2


def retrainer(
    data: Data, recipe: Recipe, out: Path, *, seed: int, device: torch.device, quiet: bool, resume_command: str
) -> Callable[[Design, int], float]:
    """From a design and a number of epochs to held-out accuracy. Finished trainings are kept.

    The test images are left out of it. Each length is a training of its own, with the recipe's schedule in that length.
    """
    fitted, held_out = data.train.split(HELD_OUT, seed)
    part = dataclasses.replace(data, name=f"{data.name}, held out", train=fitted, test=held_out)

    def retrain(design: Design, epochs: int) -> float:
        folder = out / f"{epochs}-epochs" / design_fingerprint(design)
        job = Job(
            design, part, with_epochs(recipe, epochs), folder, seed, resume=True, quiet=quiet,
            processes=Processes(device), resume_command=resume_command, scored_on="held-out",
        )  # fmt: skip
        try:
            return float(train_seeds(job)["accuracy"])
        except DivergedError:  # it has lost against any that learns
            return 0.0

    return retrain
