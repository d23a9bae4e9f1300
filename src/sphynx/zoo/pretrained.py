"""Trained networks and teachers by a model's name or a path.

network = load_named("sphynx-cifar100-25k")
"""

from __future__ import annotations

from pathlib import Path

from sphynx.network.build import AnyNetwork
from sphynx.network.trained import TrainedNetwork, load_trained
from sphynx.train.job import Job
from sphynx.train.runs import AUTO_TEACHER, teacher_for
from sphynx.zoo.shipped import SHIPPED, model_path


def load_named(run_or_name: str | Path, folder: Path = SHIPPED) -> TrainedNetwork:
    """Load a run folder, its weights file or a model's name."""
    return load_trained(model_path(run_or_name, folder))


def named_teacher(run_or_name: str, job: Job, folder: Path = SHIPPED) -> AnyNetwork:
    """Load the teacher that a run folder or a model's name says; train one for `auto`."""
    return teacher_for(run_or_name if run_or_name == AUTO_TEACHER else str(model_path(run_or_name, folder)), job)
