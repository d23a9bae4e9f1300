"""Allocation searches that listen to a teacher: weights learn from its kept views, allocations from images held out.

The training recipe says what the views are, what part of the training images they leave out, and how much the
teacher's word counts. Held-out images are augmented, not mixed, and go by their labels; they are passed over as often
as an epoch of views has batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from torch import Tensor
from torch.nn import functional

from sphynx.data.batches import Augmentation, Batches, plain_batches
from sphynx.data.images import Data
from sphynx.errors import InputError
from sphynx.network.trained import TrainedNetwork
from sphynx.run.work import Work
from sphynx.search.allocation.allocate import Lessons
from sphynx.search.epochs import EVALUATION_BATCH
from sphynx.search.objective import Batch
from sphynx.space.stream import StreamDesign
from sphynx.train.job import Job
from sphynx.train.loop import HELD_OUT_SEED, make_batches, open_views
from sphynx.train.objective import distillation_loss
from sphynx.train.processes import Processes
from sphynx.train.recipe import Recipe
from sphynx.train.views import views_identity
from sphynx.zoo.teachers import add_teacher


class TaughtPairs:
    """`job` is a training whose recipe keeps views and holds images out; its teacher makes views that are not there."""

    def __init__(self, job: Job) -> None:
        recipe, data = job.recipe, job.data
        if not (recipe.view_epochs and recipe.held_out) or not isinstance(data, Data):
            raise InputError(
                "a search with a teacher needs its views, and images held out from them",
                where="training",
                remedy="Give a recipe with `view_epochs` and `held_out` above 0, such as frontier with "
                '`settings={"training.held_out": 0.1}`.',
            )
        fitted, held_out = data.train.split(recipe.held_out, HELD_OUT_SEED)
        self._data, self._held_out_images, self.device = data, held_out, job.processes.device
        self._views = open_views(job, fitted)
        self._fitted = make_batches(fitted, job)
        self._held_out = Batches(
            held_out,
            recipe.batch_size,
            device=self.device,
            seed=job.seed,
            mean=data.mean,
            std=data.std,
            augmentation=Augmentation(crop=recipe.crop, flip=recipe.flip and data.mirrored),
        )
        self.steps = len(self._fitted)

    def pairs(self, epoch: int, start: int = 0) -> Iterator[tuple[tuple[Tensor, ...], Batch]]:
        """From the step `start` on."""
        self._fitted.load_state_dict({"seed": self._fitted.seed, "epoch": epoch, "position": start})
        length = len(self._held_out)
        passes = -(-self.steps // length)
        passed, position = divmod(start, length)
        where = {"seed": self._held_out.seed, "epoch": epoch * passes + passed, "position": position}
        self._held_out.load_state_dict(where)
        held_out = (batch for _ in range(passes - passed) for batch in self._held_out)
        for number, ((x, y), beside) in enumerate(zip(self._fitted, held_out, strict=False), start=start):
            yield (x, y, self._views.of(epoch, number)), beside

    def evaluation(self) -> Iterator[Batch]:
        """The held-out images, not augmented."""
        return plain_batches(
            self._held_out_images, EVALUATION_BATCH, device=self.device, mean=self._data.mean, std=self._data.std
        )


def taught_job(
    design: StreamDesign,
    data: Data,
    recipe: Recipe,
    out: Path,
    views: Path | None,
    teacher: TrainedNetwork | str | Path | None,
    work: Work,
) -> Job:
    job = Job(design, data, recipe, out, work.seed, views=views, voice=work.voice, processes=Processes(work.device))
    return add_teacher(job, teacher)


def taught_lessons(job: Job) -> Lessons:
    recipe = job.recipe

    def loss(logits: Tensor, labels: Tensor, taught: Tensor) -> Tensor:
        of_labels = functional.cross_entropy(logits, labels, label_smoothing=recipe.label_smoothing)
        of_teacher = distillation_loss(logits, taught.float(), recipe)
        return recipe.label_weight * of_labels + recipe.distillation_weight * of_teacher

    described = {"views": views_identity(job.data.identity(), recipe), "recipe": recipe.to_json()}
    return Lessons(TaughtPairs(job), loss, described)
