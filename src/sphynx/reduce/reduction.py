"""Takes a trained network down to a budget of ReLUs: a method chooses what stays, then the original's answers train it.

    out/                 the run folder of the network that is kept, as training leaves it; reduction.json
    out/METHOD/          a method's own work: masks, plans, `chosen` (the design and the weights to begin with)
    out/METHOD/run       where several methods are tried: each one's training

Everything is resumable: finished parts are read, the one that was interrupted goes on.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import torch

from sphynx.data.images import Data
from sphynx.errors import InputError
from sphynx.network.build import AnyNetwork, build_network
from sphynx.network.trained import TrainedNetwork, load_model, save_model
from sphynx.record import fingerprint
from sphynx.reduce.agreement import agreement
from sphynx.reduce.learning import LARGEST_GRADIENT
from sphynx.reduce.methods.autorep import choose_autorep
from sphynx.reduce.methods.channels import choose_channels
from sphynx.reduce.methods.cryptonas import choose_cryptonas
from sphynx.reduce.methods.deepreduce import choose_deepreduce
from sphynx.reduce.methods.delphi import choose_delphi
from sphynx.reduce.methods.safenet import choose_safenet
from sphynx.reduce.methods.senet import choose_senet
from sphynx.reduce.methods.snl import choose_snl
from sphynx.reduce.methods.stream import choose_stream
from sphynx.reduce.results import REDUCTION, Reduced, ReduceResult
from sphynx.reduce.settings import Method, ReduceSettings
from sphynx.reduce.task import CPU, Choice, Task
from sphynx.run.folder import CHECKPOINT, RunFolder
from sphynx.run.progress import QUIET, Voice
from sphynx.space.files import AnyDesign
from sphynx.space.reduced import NonlinearCounts, ReducedDesign
from sphynx.train.evaluate import evaluate
from sphynx.train.job import Job
from sphynx.train.loop import open_views
from sphynx.train.processes import Processes
from sphynx.train.recipe import Recipe
from sphynx.train.results import TrainResult
from sphynx.train.runs import as_teacher, train_unless_finished
from sphynx.train.views import VIEWS, Views, weights_digest

METHODS: Mapping[Method, Callable[[Task], Choice]] = {
    "stream": choose_stream,
    "channels": choose_channels,
    "delphi": choose_delphi,
    "safenet": choose_safenet,
    "deepreduce": choose_deepreduce,
    "cryptonas": choose_cryptonas,
    "snl": choose_snl,
    "senet": choose_senet,
    "autorep": choose_autorep,
}
AUTO: tuple[Method, ...] = ("stream", "channels")
CHOSEN, CHOICE = "chosen", "choice.json"


def reduce_trained(
    trained: TrainedNetwork,
    data: Data,
    relu_budget: int | Mapping[Method, int],
    settings: ReduceSettings,
    recipe: Recipe,
    out: Path,
    *,
    seed: int = 0,
    device: torch.device = CPU,
    resume: bool = False,
    voice: Voice = QUIET,
    views: Path | None = None,
) -> ReduceResult:
    """The recipe distils; its images are normalised as the original's were. Several methods may have budgets of their
    own."""
    relus = trained.design.relus
    names = AUTO if settings.method == "auto" else (settings.method,)
    budgets = {name: relu_budget if isinstance(relu_budget, int) else relu_budget[name] for name in names}
    largest = max(budgets.values())
    if not 0 < min(budgets.values()) <= largest < relus:
        raise InputError(
            f"{largest:,} is not a budget below the network's {relus:,} ReLUs",
            where="`relu_budget`",
            remedy="Give less, such as a tenth of them.",
        )
    if recipe.distillation == "none":
        raise InputError(
            "the recipe does not distil, so the network would not learn from the original",
            where="`recipe`",
            remedy='Give `settings={"distillation": "kl"}`, or the recipe distil.',
        )
    data = dataclasses.replace(data, mean=trained.mean, std=trained.std)
    several = len(names) > 1
    if several or recipe.view_epochs:  # networks are compared on what none has seen; views are of the same images
        recipe = dataclasses.replace(recipe, held_out=settings.held_out)
    task = Task(as_teacher(trained, data), data, largest, settings, recipe, out, seed, device, resume, voice)
    if recipe.view_epochs:
        views = views or out / VIEWS
        task = dataclasses.replace(task, views=_open_views(task, views))
    tried = []
    for name in names:
        own = dataclasses.replace(task.within(name), settings=settings.by(name), relu_budget=budgets[name])
        voice.say(f"method {name}", stage="reduce")
        tried.append(_reduce(own, name, out / name / "run" if several else out, views))
    accuracy = evaluate(task.original, data.test, data.mean, data.std).accuracy
    result = ReduceResult(largest, relus, accuracy, tuple(tried))
    if several:
        _keep(out / result.best.method / "run", out)
    RunFolder(out).write_json(REDUCTION, result.to_json())
    return result


def _open_views(task: Task, file: Path) -> Views:
    job = Job(task.original.design, task.data, task.recipe, task.out, teacher=task.original, views=file)
    job = dataclasses.replace(job, voice=task.voice, processes=Processes(task.device))
    return open_views(job, task.fitted_and_held_out[0])


def _reduce(task: Task, method: Method, out: Path, views: Path | None) -> Reduced:
    choice = _choose_once(task, METHODS[method])
    recipe = task.recipe
    if counts_of(choice.design).squares and not recipe.grad_clip:
        recipe = dataclasses.replace(recipe, grad_clip=LARGEST_GRADIENT)  # squares of squares run away otherwise
    job = Job(
        choice.design,
        task.data,
        recipe,
        out,
        task.seed,
        teacher=task.original,
        start=choice.start,
        views=views,
        resume=task.resume,
        voice=task.voice,
        processes=Processes(task.device),
    )
    result: TrainResult = train_unless_finished(job)
    network = load_model(out)
    return Reduced(
        method,
        counts_of(choice.design),
        result.accuracy,
        agreement(task, network, task.data.test),
        result.minutes,
        agreement(task, network) if task.recipe.held_out == task.settings.held_out else None,
    )


def counts_of(design: AnyDesign) -> NonlinearCounts:
    if isinstance(design, ReducedDesign):
        return design.counts
    total = design.account.total
    return NonlinearCounts(total.relus, total.comparisons)


def _choose_once(task: Task, choose: Callable[[Task], Choice]) -> Choice:
    """The method's choice; that of an earlier, interrupted run where there is one."""
    folder = RunFolder(task.out / CHOSEN)
    belongs_to = fingerprint(
        weights_digest(task.original),
        task.data.identity(),
        task.settings.to_json(),
        task.recipe.to_json(),
        task.relu_budget,
        task.seed,
    )
    if task.resume and (folder.path / CHOICE).is_file():
        if folder.read_json(CHOICE)["belongs_to"] != belongs_to:
            raise InputError(
                "the reduction was started with another network, data, budget or settings",
                where=str(task.out),
                remedy="Give those that it was started with, or another `out`.",
            )
        network = load_model(folder.path)
        return Choice(network.design, network)
    choice = choose(task)
    start = choice.start or _random(choice.design, task.seed)
    save_model(folder.path, start)
    folder.write_json(CHOICE, {"belongs_to": belongs_to})
    return Choice(choice.design, start)


def _random(design: AnyDesign, seed: int) -> AnyNetwork:
    torch.manual_seed(seed)
    return build_network(design)


def _keep(run: Path, out: Path) -> None:
    """The folder of the better network becomes the result's; its checkpoint stays where it is."""
    for file in run.iterdir():
        if file.is_file() and file.name != CHECKPOINT:
            shutil.copy(file, out / file.name)  # with its mode: weights are for their owner
    shutil.copytree(run / "figures", out / "figures", dirs_exist_ok=True)
