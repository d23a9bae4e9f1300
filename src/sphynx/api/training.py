"""A design becomes a trained network. `stages` says what this call has in common with those that search."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sphynx.api.stages import Hears, voice_of
from sphynx.data.images import Data
from sphynx.data.open import open_data
from sphynx.data.streamed import StreamedData
from sphynx.design.ordering import NO_SETTINGS
from sphynx.design.request import training_recipe
from sphynx.errors import InputError
from sphynx.network.trained import TrainedNetwork
from sphynx.run.resuming import refuse_old_run
from sphynx.run.sweep import HERE, open_sweep
from sphynx.space.artifact import read_design
from sphynx.space.files import AnyDesign
from sphynx.train.job import Job
from sphynx.train.processes import Processes, join_processes
from sphynx.train.recipe import AUTO, Recipe, load_recipe
from sphynx.train.results import TrainSummary
from sphynx.train.runs import as_teacher, train_seeds
from sphynx.zoo.pretrained import named_teacher


def train_network(
    design: AnyDesign | str | Path,
    data: Data | StreamedData | str | Path,
    out: str | Path,
    *,
    recipe: str | Recipe = AUTO,
    settings: Mapping[str, Any] = NO_SETTINGS,
    seed: int = 0,
    seeds: int = 1,
    teacher: TrainedNetwork | str | Path | None = None,
    views: str | Path | None = None,
    resume: bool = False,
    device: str = AUTO,
    tensorboard: bool = False,
    progress: Hears = None,
    started: Callable[[str, Recipe], None] = lambda _name, _recipe: None,
    processes: Processes | None = None,
    ray: str = HERE,
) -> TrainSummary:
    """Trains a design: `.accuracy` is that of the final epoch on test images, which are not looked at before.

    `recipe` is a name, a TOML file or a `Recipe`; "auto" suits it to the data; `settings` override its values. A recipe
    that distils needs a `teacher`: "auto", a run, a model's name or a loaded network. `load(out)` is the network (of
    several seeds: `load(out/"seed-0")`). `started` is told the recipe; `processes` are those of torchrun.

        >>> trained = sphynx.train_network("design.json", "digits", "runs/again", settings={"epochs": 1})
        >>> len(trained.runs), 0 < trained.accuracy <= 1
        (1, True)
    """
    if processes is None:
        with join_processes(device) as joined:
            return train_network(
                design,
                data,
                out,
                recipe=recipe,
                settings=settings,
                seed=seed,
                seeds=seeds,
                teacher=teacher,
                views=views,
                resume=resume,
                device=device,
                tensorboard=tensorboard,
                progress=progress,
                started=started,
                processes=joined,
                ray=ray,
            )
    if ray != HERE and processes.world > 1:
        raise InputError("torchrun and Ray cannot be combined", where="`ray`", remedy="Use one of them.")
    folder, kept_views = Path(out), None if views is None else Path(views)
    described = read_design(Path(design)) if isinstance(design, str | Path) else design
    refuse_old_run(folder, "auto" if resume else "never")
    if isinstance(recipe, str) and recipe != AUTO:  # its faults are told before the data are read, which can take long
        _check_teacher(teacher, kept_views, load_recipe(recipe, settings))
    images = open_data(str(data)) if isinstance(data, str | Path) else data
    name, chosen = ("", recipe) if isinstance(recipe, Recipe) else training_recipe(recipe, settings, images)
    _check_teacher(teacher, kept_views, chosen)
    if processes.leads:
        started(name, chosen)
    job = Job(
        described,
        images,
        chosen,
        folder,
        seed,
        resume=resume,
        voice=voice_of(progress),
        processes=processes,
        tensorboard=tensorboard,
        views=kept_views,
    )
    if teacher is not None:
        if isinstance(teacher, TrainedNetwork):
            job = job.taught_by(as_teacher(teacher, images))
        else:
            job = job.taught_by(named_teacher(str(teacher), job))
    with open_sweep(ray, voice_of(progress)) as sweep:
        return train_seeds(job, seeds, sweep)


def _check_teacher(teacher: TrainedNetwork | str | Path | None, views: Path | None, recipe: Recipe) -> None:
    if views is not None and not recipe.view_epochs:
        raise InputError(
            "the recipe does not use a file of views (`view_epochs` is 0)",
            where="`views`",
            remedy="Give `view_epochs=N`, or leave `views` out.",
        )
    if views is not None and views.is_file() and recipe.distillation != "none":
        return
    if (recipe.distillation != "none") != (teacher is not None):
        raise InputError(
            "distillation needs both a teacher and a loss",
            remedy='Give `teacher` and `distillation="squared"` (or kl).',
        )
