"""A training job: what is trained, on what and by which recipe, and how the run's folder says so.

    config.json   design, data, recipe, seed, teacher; `teacher_weights` says which network of that design taught,
                  `taught_by` which ones where there are several; `data_content` is a hash of the images and labels

A run is continued with what it was started with: design, recipe, seed and images by the checkpoint's own word
(`run.folder`), the teacher by config.json's.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch

from sphynx.data.images import Data
from sphynx.data.source import KEY as DATA_SOURCE
from sphynx.data.streamed import StreamedData
from sphynx.errors import InputError
from sphynx.network.build import AnyNetwork
from sphynx.network.ensemble import Ensemble, Teacher
from sphynx.network.trained import save_normalisation
from sphynx.record import fingerprint
from sphynx.run.environment import describe_environment
from sphynx.run.folder import RunFolder
from sphynx.run.progress import NORMAL, Voice
from sphynx.space.files import AnyDesign, design_fingerprint
from sphynx.train.processes import Processes
from sphynx.train.recipe import Recipe
from sphynx.train.views import Views, weights_digest

CONFIG, TEACHER_WEIGHTS, TAUGHT_BY, DATA_CONTENT = "config.json", "teacher_weights", "taught_by", "data_content"


@dataclass(frozen=True)
class Job:
    design: AnyDesign
    data: Data | StreamedData
    recipe: Recipe
    out: Path
    seed: int = 0
    teacher: Teacher | None = None
    start: AnyNetwork | None = None  # of the same design: the weights to begin with, instead of random ones
    views: Path | None = None  # the teacher's logits, where the recipe keeps them; else in the run's own folder
    resume: bool = False  # continue from the folder's checkpoint, where it has one
    voice: Voice = NORMAL
    processes: Processes = field(default_factory=lambda: Processes(torch.device("cpu")))
    tensorboard: bool = False
    scored_on: Literal["test", "held-out"] = "test"  # what `data.test` is: part of the training images in a ranking

    def identity(self) -> dict[str, Any]:
        return {
            "design": design_fingerprint(self.design),
            "data": self.data.identity(),
            "recipe": self.recipe.to_json(),
            "seed": self.seed,
            "teacher": None if self.teacher is None else design_fingerprint(self.teacher.design),
            **({} if self.start is None else {"start": weights_digest(self.start)}),
        }

    def belongs_to(self) -> str:
        return fingerprint(self.identity())

    def folder(self, *, tensorboard: bool = False) -> RunFolder:
        return RunFolder(self.out, belongs_to=self.belongs_to(), data=self.data.content, tensorboard=tensorboard)

    def taught_by(self, teacher: Teacher) -> Job:
        return dataclasses.replace(self, teacher=teacher)


def refuse_other_teacher(job: Job, folder: RunFolder, views: Views | None = None) -> None:
    """A run goes on with the teacher that it began with: another one of the same design has other weights."""
    weights = _teacher_weights(job, views)
    if not weights or not (folder.path / CONFIG).is_file():
        return
    if folder.read_json(CONFIG).get(TEACHER_WEIGHTS, weights) != weights:  # older runs do not say it
        raise InputError(
            "the teacher is not the one that the run was started with: its weights differ",
            where=str(folder.path),
            remedy="Give the same teacher, or another `out` folder.",
        )


def _teacher_weights(job: Job, views: Views | None) -> str:
    if views is not None:
        return views.weights
    return "" if job.teacher is None else weights_digest(job.teacher)


def describe_run(job: Job, folder: RunFolder, views: Views | None) -> None:
    teacher = job.teacher.design.to_json() if job.teacher is not None else None
    config: dict[str, Any] = {
        "design": job.design.to_json(),
        "data": job.data.identity(),
        DATA_CONTENT: job.data.content,
        **({} if job.data.source is None else {DATA_SOURCE: job.data.source.to_json()}),
        "recipe": job.recipe.to_json(),
        "seed": job.seed,
        "scored_on": job.scored_on,
        "teacher": teacher if views is None else views.teacher,
        "belongs_to": job.belongs_to(),
    }
    if isinstance(job.teacher, Ensemble):
        config["teachers"] = len(job.teacher.members)
        config[TAUGHT_BY] = [weights_digest(member) for member in job.teacher.members]
    if weights := _teacher_weights(job, views):
        config[TEACHER_WEIGHTS] = weights
    folder.write_json(CONFIG, config)
    save_normalisation(folder.path, job.data)
    folder.write_json("environment.json", describe_environment(job.processes.device))
    job.design.save(folder.path / "design.json")
    if not (job.resume and folder.has_checkpoint):
        folder.keep_metrics([])
