"""Whole training runs: several seeds with their mean and spread, and the teacher that a distilled network needs.

out/                 one seed: the run itself         out/seed-0, out/seed-1, ...   several seeds
out/teacher          a teacher trained for this run   out/result.json               the summary
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Sequence
from typing import Any

from sphynx.errors import InputError
from sphynx.network.build import AnyNetwork
from sphynx.network.fit import require_fit
from sphynx.network.model import MODEL, load_model
from sphynx.run.folder import RunFolder
from sphynx.space.design import Design
from sphynx.space.files import AnyDesign, save_design
from sphynx.space.shipped import model_path
from sphynx.train.loop import RESULT, Job, train

AUTO_TEACHER = "auto"


def train_seeds(job: Job, seeds: int = 1) -> dict[str, Any]:
    """The seeds job.seed, job.seed + 1, ...; a resumed call skips those that are finished."""
    if seeds == 1:
        return _train_unless_finished(job)
    results = []
    for seed in range(job.seed, job.seed + seeds):
        results.append(_train_unless_finished(dataclasses.replace(job, seed=seed, out=job.out / f"seed-{seed}")))
    if not job.processes.leads:
        return {}
    summary = summarise(results)
    RunFolder(job.out).write_json(RESULT, summary)
    save_design(job.design, job.out / "design.json")
    return summary


def summarise(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Mean and sample standard deviation of the final-epoch accuracies, beside the single results."""
    accuracies = [result["accuracy"] for result in results]
    return {
        "accuracy": statistics.fmean(accuracies),
        "accuracy_std": statistics.stdev(accuracies) if len(accuracies) > 1 else None,
        "accuracies": accuracies,
        "seeds": [result["seed"] for result in results],
        "minutes": round(sum(result["minutes"] for result in results), 3),
        "runs": list(results),
    }


def teacher_for(spec: str, job: Job) -> AnyNetwork:
    """`auto` trains the same cells with ReLU-Conv-BN by the same recipe, undistilled; else a run or a model's name."""
    if spec != AUTO_TEACHER:
        teacher = load_model(model_path(spec))
        require_fit(teacher.design, job.data, trained=True)
        return teacher
    out = job.out / "teacher"
    design = teacher_design(job.design)
    recipe = job.recipe.undistilled()
    _train_unless_finished(dataclasses.replace(job, design=design, recipe=recipe, out=out, teacher=None))
    job.processes.wait()
    return load_model(out)


def teacher_design(design: AnyDesign) -> Design:
    if not isinstance(design, Design) or design.inner_relus:
        raise InputError(
            "there is an automatic teacher only for a Sphynx design without inner ReLUs",
            where=design.name or "design",
            remedy="Give a trained run folder as --teacher.",
        )
    return dataclasses.replace(design, inner_relus=True, name=f"{design.name}-teacher" if design.name else "teacher")


def _train_unless_finished(job: Job) -> dict[str, Any]:
    folder = job.out
    if job.resume and (folder / RESULT).is_file() and (folder / MODEL).is_file():
        RunFolder(folder, belongs_to=job.belongs_to()).load_checkpoint()  # refuses the run of another design
        result: dict[str, Any] = RunFolder(folder).read_json(RESULT)
        return result
    return train(job)
