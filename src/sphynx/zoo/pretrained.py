"""Trained networks and teachers by a model's name or a path.

network = load_named("sphynx-cifar100-25k")
"""

from __future__ import annotations

from pathlib import Path

from sphynx.network.trained import TrainedNetwork, load_trained
from sphynx.train.job import Job
from sphynx.train.runs import AUTO_TEACHER, as_teacher, teacher_for
from sphynx.zoo.shipped import SHIPPED, model_path


def load_named(run_or_name: str | Path, folder: Path = SHIPPED) -> TrainedNetwork:
    """Load a run folder, its weights file or a model's name."""
    return load_trained(model_path(run_or_name, folder))


def taught(job: Job, teacher: TrainedNetwork | str | Path | None, folder: Path = SHIPPED) -> Job:
    """The job with its teacher: a loaded network, a run folder or a model's name; `auto` trains one."""
    if teacher is None or isinstance(teacher, TrainedNetwork):
        return job if teacher is None else job.taught_by(as_teacher(teacher, job.data))
    name = str(teacher)
    return job.taught_by(teacher_for(name if name == AUTO_TEACHER else str(model_path(name, folder)), job))
