"""A design becomes a trained network."""

from __future__ import annotations

from pathlib import Path

from sphynx.config import Keywords
from sphynx.data.images import Data
from sphynx.data.open import open_data
from sphynx.data.streamed import StreamedData
from sphynx.design.request import training_recipe
from sphynx.errors import InputError
from sphynx.run.settings import AUTO
from sphynx.run.sweep import HERE
from sphynx.run.work import Work, open_work
from sphynx.space.artifact import read_design
from sphynx.space.files import AnyDesign
from sphynx.train.job import Job
from sphynx.train.processes import Processes, join_processes
from sphynx.train.recipe import Recipe, load_recipe
from sphynx.train.results import TrainSummary
from sphynx.train.runs import train_seeds
from sphynx.train.settings import TrainSettings
from sphynx.zoo.teachers import add_teacher


@Keywords(TrainSettings).function
def train_network(
    design: AnyDesign | str | Path, data: Data | StreamedData | str | Path, settings: TrainSettings
) -> TrainSummary:
    """Trains a design: `.accuracy` is that of the final epoch on test images, which are not looked at before.

    `recipe` is a name, a TOML file or a `Recipe`; "auto" suits it to the data; `settings` override its values. A recipe
    that distils needs a `teacher`: "auto", a run, a model's name or a network. `load_network(out)` is the network
    (of several seeds: `load_network(out/"seed-0")`).

        >>> trained = sphynx.train_network("design.json", "digits", out="runs/again", settings={"epochs": 1})
        >>> len(trained.runs), 0 < trained.accuracy <= 1
        (1, True)
    """
    described = read_design(Path(design)) if isinstance(design, str | Path) else design
    check_recipe(settings)
    with open_work(settings) as work, join_processes(work.device) as processes:
        if settings.ray != HERE and processes.world > 1:
            raise InputError("torchrun and Ray cannot be combined", where="`ray`", remedy="Use one of them.")
        images = open_data(str(data)) if isinstance(data, str | Path) else data
        return train_seeds(_job(described, images, settings, work, processes), settings.seeds, work.sweep)


def check_recipe(settings: TrainSettings) -> None:
    """Tell the faults of a recipe before the data are read, which can take long. That of `auto` depends on them."""
    if isinstance(settings.recipe, str) and settings.recipe != AUTO:
        _check_teacher(settings, load_recipe(settings.recipe, settings.settings))


def _job(
    design: AnyDesign, data: Data | StreamedData, settings: TrainSettings, work: Work, processes: Processes
) -> Job:
    chosen = settings.recipe
    if not isinstance(chosen, Recipe):
        name, chosen = training_recipe(chosen, settings.settings, data)
        suited = settings.recipe == AUTO and "epochs" not in settings.settings
        why = f", as suits {len(data.train):,} training images" if suited else ""
        if processes.leads:
            work.voice.say(f"recipe {name}, epochs: {chosen.epochs}{why}", stage="train")
    _check_teacher(settings, chosen)
    job = Job(
        design,
        data,
        chosen,
        Path(settings.out),
        work.seed,
        resume=work.resume,
        voice=work.voice,
        processes=processes,
        tensorboard=settings.tensorboard,
        views=None if settings.views is None else Path(settings.views),
    )
    return add_teacher(job, settings.teacher)


def _check_teacher(settings: TrainSettings, recipe: Recipe) -> None:
    views = settings.views
    if views is not None and not recipe.view_epochs:
        raise InputError(
            "the recipe does not use a file of views (`view_epochs` is 0)",
            where="`views`",
            remedy='Give `settings={"view_epochs": 8}`, or leave `views` out.',
        )
    if views is not None and Path(views).is_file() and recipe.distillation != "none":
        return
    if (recipe.distillation != "none") != (settings.teacher is not None):
        raise InputError(
            "distillation needs both a teacher and a loss",
            remedy='Give `teacher` and `settings={"distillation": "squared"}` (or kl).',
        )
