"""Teachers by a model's name or a path."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sphynx.network.build import AnyNetwork
from sphynx.network.ensemble import Ensemble
from sphynx.network.trained import TrainedNetwork
from sphynx.train.job import Job
from sphynx.train.runs import AUTO_TEACHER, as_teacher, teacher_for
from sphynx.zoo.shipped import SHIPPED, model_path


def add_teacher(
    job: Job,
    teacher: TrainedNetwork | str | Path | Sequence[TrainedNetwork | str | Path] | None,
    folder: Path = SHIPPED,
) -> Job:
    """The job with its teacher: a loaded network, a run folder or a model's name; `auto` trains one. Several, in a list
    or with commas between them, teach by the mean of their logits."""
    if teacher is None:
        return job
    if isinstance(teacher, str) and "," in teacher and not Path(teacher).exists():
        teacher = teacher.split(",")
    if isinstance(teacher, str | Path | TrainedNetwork):
        return job.taught_by(_one(teacher, job, folder))
    return job.taught_by(Ensemble([_one(one, job, folder) for one in teacher]))


def _one(teacher: TrainedNetwork | str | Path, job: Job, folder: Path) -> AnyNetwork:
    if isinstance(teacher, TrainedNetwork):
        return as_teacher(teacher, job.data)
    name = str(teacher)
    return teacher_for(name if name == AUTO_TEACHER else str(model_path(name, folder)), job)
