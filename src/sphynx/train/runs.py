"""Whole training runs: several seeds with their mean and spread, and the teacher that a distilled network needs.

out/                 one seed: the run itself         out/seed-0, out/seed-1, ...   several seeds
out/teacher          a teacher trained for this run   out/result.json               the summary
out/views.safetensors   a teacher's logits, where the recipe keeps them
"""

from __future__ import annotations

import dataclasses

from sphynx.errors import InputError
from sphynx.network.build import AnyNetwork
from sphynx.network.fit import require_fit
from sphynx.network.model import load_model
from sphynx.run.folder import RunFolder
from sphynx.space.artifact import MODEL
from sphynx.space.design import Design
from sphynx.space.files import AnyDesign, save_design
from sphynx.space.shipped import model_path
from sphynx.train.loop import Job, train
from sphynx.train.results import RESULT, TrainResult, TrainSummary
from sphynx.train.views import VIEWS

AUTO_TEACHER = "auto"


def train_seeds(job: Job, seeds: int = 1) -> TrainSummary:
    """The seeds job.seed, job.seed + 1, ...; a resumed call skips those that are finished."""
    if seeds == 1:
        return TrainSummary((train_unless_finished(job),))
    views = job.views or job.out / VIEWS  # one file for all seeds
    jobs = (
        dataclasses.replace(job, seed=seed, out=job.out / f"seed-{seed}", views=views)
        for seed in range(job.seed, job.seed + seeds)
    )
    summary = TrainSummary(tuple(train_unless_finished(one) for one in jobs))
    if job.processes.leads:
        RunFolder(job.out).write_json(RESULT, summary.to_json())
        save_design(job.design, job.out / "design.json")
    return summary


def train_unless_finished(job: Job) -> TrainResult:
    """A resumed job whose folder holds a finished training is not trained again."""
    folder = job.out
    if job.resume and (folder / RESULT).is_file() and (folder / MODEL).is_file():
        run = RunFolder(folder, belongs_to=job.belongs_to())
        run.load_checkpoint()  # refuses the run of another design
        return TrainResult.from_json(run.read_json(RESULT), where=str(folder / RESULT))
    return train(job)


def teacher_for(spec: str, job: Job) -> AnyNetwork:
    """`auto` trains the same cells with ReLU-Conv-BN by the same recipe, undistilled; else a run or a model's name."""
    if spec != AUTO_TEACHER:
        teacher = load_model(model_path(spec))
        require_fit(teacher.design, job.data, trained=True)
        return teacher
    out = job.out / "teacher"
    design = teacher_design(job.design)
    recipe = job.recipe.undistilled()
    train_unless_finished(dataclasses.replace(job, design=design, recipe=recipe, out=out, teacher=None))
    job.processes.wait()
    return load_model(out)


def teacher_design(design: AnyDesign) -> Design:
    if not isinstance(design, Design) or design.inner_relus:
        raise InputError(
            "there is an automatic teacher only for a design of Sphynx cells without inner ReLUs",
            where=design.name or "design",
            remedy="Give a trained run folder as --teacher.",
        )
    return dataclasses.replace(design, inner_relus=True, name=f"{design.name}-teacher" if design.name else "teacher")
