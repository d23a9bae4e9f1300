"""Retrain cells and placements to rank them: a short training on part of the training images, scored on the rest.

`ranking_recipe` says how short in a pipeline, `too_few_to_rank` from how many images on a ranking says anything.

out/N-epochs/FINGERPRINT   one training: a design's, in one round of a ranking
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Protocol

from sphynx.data.images import Data, held_out_count
from sphynx.design.request import epochs_of
from sphynx.errors import DivergedError
from sphynx.run.work import Work
from sphynx.search.ranking import LEAST_EPOCHS
from sphynx.space.files import AnyDesign, design_fingerprint
from sphynx.train.job import Job
from sphynx.train.processes import Processes
from sphynx.train.recipe import Recipe, with_epochs
from sphynx.train.runs import train_unless_finished

HELD_OUT = 0.2
RANKING_PART = 8  # cells are ranked by an eighth of the training's epochs
LEAST_RANKING_STEPS = 34  # what two epochs of `small` are for the 1,438 digits: 94.8 to 98.6 % are right after them
# On this many held-out images the standard error of a difference of two accuracies is 3 points where these are at 90 %.
# Cells that were ranked on digits lay within 3 points of one another.
LEAST_RANKED_ON = 200


def ranking_recipe(training: Recipe, images: int) -> Recipe:
    """The recipe of the short trainings by which cells are ranked, in the last round; no longer than the training
    itself."""
    epochs = max(least_ranking_epochs(training, images), training.epochs // RANKING_PART)
    return with_epochs(training, min(epochs, training.epochs))


def least_ranking_epochs(training: Recipe, images: int) -> int:
    """Fewer say nothing: neither in a round nor in a time budget."""
    fitted = images - held_out_count(images, HELD_OUT)
    fitted -= held_out_count(fitted, training.held_out)
    return max(LEAST_EPOCHS, epochs_of(LEAST_RANKING_STEPS, fitted, training.batch_size))


def too_few_to_rank(images: int) -> bool:
    return held_out_count(images, HELD_OUT) < LEAST_RANKED_ON


class Retrain(Protocol):
    def __call__(self, design: AnyDesign, epochs: int) -> float: ...


def retrainer(data: Data, recipe: Recipe, out: Path, work: Work) -> Retrain:
    """From a design and a number of epochs to held-out accuracy. Finished trainings are kept.

    The test images are left out of it. Each length is a training of its own, with the recipe's schedule in that length.
    """
    work = work.piece()
    fitted, held_out = data.train.split(HELD_OUT, work.seed)
    part = dataclasses.replace(data, name=f"{data.name}, held out", train=fitted, test=held_out)

    def retrain(design: AnyDesign, epochs: int) -> float:
        folder = out / f"{epochs}-epochs" / design_fingerprint(design)
        job = Job(
            design,
            part,
            with_epochs(recipe, epochs),
            folder,
            work.seed,
            resume=True,
            voice=work.voice,
            processes=Processes(work.device),
            scored_on="held-out",
        )
        try:
            return train_unless_finished(job).accuracy
        except DivergedError:  # it has lost against any that learns
            return 0.0

    return retrain
