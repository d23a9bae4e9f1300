"""Whole training runs: several seeds with their mean and spread, and the teacher that a distilled network needs.

out/                 one seed: the run itself         out/seed-0, out/seed-1, ...   several seeds
out/teacher          a teacher trained for this run   out/result.json               the summary
out/views.safetensors   a teacher's logits, where the recipe keeps them
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from sphynx.data.class_order import numbers_among
from sphynx.data.images import DataFace
from sphynx.errors import InputError
from sphynx.network.build import AnyNetwork, with_class_order
from sphynx.network.fit import require_fit
from sphynx.network.trained import TrainedNetwork, load_model, load_trained
from sphynx.run.folder import RunFolder
from sphynx.run.progress import QUIET, Voice
from sphynx.run.sweep import IN_TURN, Sweep
from sphynx.space.artifact import MODEL
from sphynx.space.design import Design
from sphynx.space.files import AnyDesign
from sphynx.train.job import Job, refuse_other_teacher
from sphynx.train.loop import train
from sphynx.train.results import RESULT, TrainResult, TrainSummary
from sphynx.train.views import VIEWS

AUTO_TEACHER = "auto"


def train_seeds(job: Job, seeds: int = 1, sweep: Sweep = IN_TURN) -> TrainSummary:
    """The seeds job.seed, job.seed + 1, ...; a resumed call skips those that are finished."""
    if seeds == 1:
        return TrainSummary(train_all({f"seed {job.seed}": job}, sweep))
    views = job.views or job.out / VIEWS  # one file for all seeds
    jobs = {
        f"seed {seed}": dataclasses.replace(job, seed=seed, out=job.out / f"seed-{seed}", views=views)
        for seed in range(job.seed, job.seed + seeds)
    }
    first = dict([next(iter(jobs.items()))]) if job.recipe.view_epochs and not views.is_file() else {}
    results = train_all(first, sweep)  # it makes the views, which the others read
    summary = TrainSummary(results + train_all({name: jobs[name] for name in jobs if name not in first}, sweep))
    if job.processes.leads:
        RunFolder(job.out).write_json(RESULT, summary.to_json())
        job.design.save(job.out / "design.json")
    return summary


def train_all(jobs: Mapping[str, Job], sweep: Sweep = IN_TURN, voice: Voice = QUIET) -> tuple[TrainResult, ...]:
    """Independent trainings, by their names; `voice` says each that begins here. One that is cut off and called again
    continues."""
    if sweep.may_repeat:
        again = {name: dataclasses.replace(job, resume=True) for name, job in jobs.items()}
        return tuple(sweep.map({name: partial(train_unless_finished, job) for name, job in again.items()}))
    results = []
    for name, job in jobs.items():
        voice.say(name, stage="design")
        results.append(train_unless_finished(job))
    return tuple(results)


def train_unless_finished(job: Job) -> TrainResult:
    """A resumed job whose folder holds a finished training is not trained again."""
    folder = job.out
    if job.resume and (folder / RESULT).is_file() and (folder / MODEL).is_file():
        run = job.folder()
        run.load_checkpoint()  # refuses the run of another design
        refuse_other_teacher(job, run)
        return TrainResult.from_json(run.read_json(RESULT), where=str(folder / RESULT))
    return train(job)


def teacher_for(spec: str, job: Job) -> AnyNetwork:
    """`auto` trains the same cells with ReLU-Conv-BN by the same recipe, undistilled; else a trained run's path."""
    if spec != AUTO_TEACHER:
        return as_teacher(load_trained(Path(spec)), job.data)
    out = job.out / "teacher"
    design = teacher_design(job.design)
    recipe = job.recipe.undistilled()
    train_unless_finished(dataclasses.replace(job, design=design, recipe=recipe, out=out, teacher=None))
    job.processes.wait()
    return load_model(out)


def as_teacher(trained: TrainedNetwork, data: DataFace) -> AnyNetwork:
    """The network with its logits in the order of the data's classes, by name, so that they compare with a
    student's."""
    require_fit(trained.design, data, trained=True)
    numbers = numbers_among(data.train.class_names, trained.class_names, where=data.name, knower="teacher")
    return trained.module if numbers is None else with_class_order(trained.module, numbers)


def teacher_design(design: AnyDesign) -> Design:
    if not isinstance(design, Design) or design.inner_relus:
        raise InputError(
            "an automatic teacher needs a design of Sphynx cells without inner ReLUs",
            where=design.name or "design",
            remedy="Give a trained run folder as `teacher`.",
        )
    return dataclasses.replace(design, inner_relus=True, name=f"{design.name}-teacher" if design.name else "teacher")
