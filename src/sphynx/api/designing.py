"""From data and a ReLU budget to a trained network, in one call or stage by stage.

Each call keeps its work in a folder and continues what an interrupted one left there with `resume=True`. `progress`
hears of every epoch (`Update`); without it nothing is said. With `ray`, "local" or a cluster's address, what is
independent (seeds, cells of a ranking, placements that are trained by themselves) runs there, with the same results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sphynx.data.images import Data
from sphynx.data.open import open_data
from sphynx.data.streamed import StreamedData
from sphynx.design.ordering import NO_SETTINGS, Places, order
from sphynx.design.pipeline import Pipeline
from sphynx.design.request import placement_recipe, search_recipe, training_recipe
from sphynx.design.results import DesignResult
from sphynx.design.retraining import retrainer
from sphynx.errors import InputError
from sphynx.network.trained import TrainedNetwork
from sphynx.run.progress import Update, Voice
from sphynx.run.resuming import refuse_old_run
from sphynx.run.sweep import HERE, Sweep, open_sweep
from sphynx.search.choices import Candidates, StrategyName
from sphynx.search.objective import Objective
from sphynx.search.placement.candidates import placements, placements_within
from sphynx.search.placement.place import PlacementResult, place, with_exhaustive
from sphynx.search.ranking import Ranked, rank
from sphynx.search.ranking import random_cells as draw_cells
from sphynx.search.recipe import SearchRecipe
from sphynx.search.search import SearchResult
from sphynx.search.search import search_cells as search_one_seed
from sphynx.search.seeds import SearchSummary, search_seeds
from sphynx.search.strategies import Maker
from sphynx.search.supernet.cellspace import CellSpace
from sphynx.space.artifact import read_design
from sphynx.space.choices import ConvStack, StemChoice
from sphynx.space.design import Design
from sphynx.space.files import AnyDesign
from sphynx.space.genotype import Genotype
from sphynx.space.published_cells import find_cells
from sphynx.space.tally import Shape
from sphynx.train.loop import Job
from sphynx.train.processes import Processes, join_processes, pick_device
from sphynx.train.recipe import AUTO, Recipe, load_recipe
from sphynx.train.results import TrainSummary
from sphynx.train.runs import teacher_for, train_seeds

AGAIN = "the same call with resume=True"
NO_PRICES: Mapping[str, float] = MappingProxyType({})

Hears = Callable[[Update], None] | Voice | None


def design_network(
    data: Data | str | Path,
    relu_budget: int | str,
    out: str | Path,
    *,
    tolerance: float | str = 0.05,
    cells: Genotype | str | Path = "sphynx",
    strategy: StrategyName | None = None,
    random_cells: int | None = None,
    reduce_at: Places = "search",
    reduce_cells: int | None = None,
    candidates: Candidates = "paper",
    recipe: str = AUTO,
    compare: str = "same",
    search_recipe: str = AUTO,
    placement_recipe: str = AUTO,
    settings: Mapping[str, Any] = NO_SETTINGS,
    seed: int = 0,
    seeds: int = 1,
    time_budget: float | str | None = None,
    stem: StemChoice = "auto",
    conv_stack: ConvStack = "single",
    resume: bool = False,
    device: str = AUTO,
    progress: Hears = None,
    started: Callable[[Pipeline, Sequence[str]], None] = lambda _pipeline, _notes: None,
    resume_command: str = AGAIN,
    ray: str = HERE,
) -> DesignResult:
    """The whole method: plan, cells, places of the reduce cells, training, and a comparison. `load(out)` is the result.

    Cells are the published ones unless a `strategy` searches them; found ones are ranked beside `random_cells` random
    ones. `reduce_at` is "search", "fixed" (D/3 and 2D/3) or positions. `compare` is the recipe of the networks with
    other cells: "same", "none" or a name. `settings` are values of the stages' recipes, {"training.epochs": 4}.
    `time_budget`, seconds or "15m", scales the epochs. `started` hears of the pipeline, and of what it leaves out.

        >>> result = sphynx.design_network("digits", relu_budget="1k", out="runs/designed")  # doctest: +SKIP
        >>> result.accuracy, result.reduce_positions  # doctest: +SKIP
    """
    folder, chosen_device = Path(out), pick_device(device)
    refuse_old_run(folder, "auto" if resume else "never")
    images = _opened(data)
    asked = order(
        images,
        relu_budget,
        tolerance=tolerance,
        cells=cells,
        strategy=strategy,
        random_cells=random_cells,
        reduce_at=reduce_at,
        reduce_cells=reduce_cells,
        candidates=candidates,
        recipe=recipe,
        compare=compare,
        search_recipe_name=search_recipe,
        placement_recipe_name=placement_recipe,
        settings=settings,
        seed=seed,
        seeds=seeds,
        time_budget=time_budget,
        stem=stem,
        conv_stack=conv_stack,
    )
    voice = _voice(progress)
    with open_sweep(ray, voice, resume_command) as sweep:
        pipeline = Pipeline(
            asked.request,
            images,
            folder,
            device=chosen_device,
            resume=resume,
            resume_command=resume_command,
            voice=voice,
            sweep=sweep,
        )
        started(pipeline, asked.notes)
        return pipeline.run()


def search_cells(
    data: Data | str | Path,
    out: str | Path,
    *,
    strategy: StrategyName | Maker = "gaea",
    recipe: str = AUTO,
    settings: Mapping[str, Any] = NO_SETTINGS,
    seed: int = 0,
    seeds: int = 1,
    rank_recipe: str = "",
    random_cells: int = 0,
    beside: Sequence[str | Path] = (),
    prices: Mapping[str, float] = NO_PRICES,
    price_weight: float = 0.0,
    resume: bool = False,
    device: str = AUTO,
    progress: Hears = None,
    resume_command: str = AGAIN,
    ray: str = HERE,
) -> SearchSummary:
    """Normal and reduce cells for a data set: `.chosen`, with every seed's `.results` and their `.spread`.

    `strategy` is a name, or a class of your own with the interface `sphynx.search.strategies.strategy.Strategy`
    (examples/06_own_search_strategy.py). With a `rank_recipe` found cells are ranked by short trainings, beside
    `random_cells` random ones and those named in `beside`. `prices` of operations count by `price_weight`.

        >>> found = sphynx.search_cells("digits", "runs/cells", strategy="gaea")  # doctest: +SKIP
        >>> found.chosen.save("genotype.json")  # doctest: +SKIP
    """
    folder, chosen_device, voice = Path(out), pick_device(device), _voice(progress)
    if (random_cells or beside) and not rank_recipe:
        raise InputError(
            "there is no ranking to add them to",
            where="--random-cells, --beside",
            remedy="Give --rank fast, or neither.",
        )
    refuse_old_run(folder, "auto" if resume else "never")
    images = _opened(data)
    chosen = search_recipe(recipe, settings, images)
    drawn = draw_cells(CellSpace(chosen.nodes), random_cells, seed)
    named = _named_cells(beside, chosen.nodes)
    objective = Objective(operation_costs=dict(prices), cost_weight=price_weight)

    def one(number: int, where: Path) -> SearchResult:
        return search_one_seed(
            images,
            strategy,
            chosen,
            where,
            seed=number,
            device=chosen_device,
            objective=objective,
            resume=resume_command,
            voice=voice,
        )

    trained_by = load_recipe(rank_recipe) if rank_recipe else None
    train = (
        None
        if trained_by is None
        else retrainer(
            images,
            trained_by,
            folder / "rank",
            seed=seed,
            device=chosen_device,
            voice=voice,
            resume_command=resume_command,
        )
    )
    with open_sweep(ray, voice, resume_command) as sweep:
        ranking = _ranking(images, chosen, trained_by, train, sweep) if trained_by and train else None
        return search_seeds(
            one,
            folder,
            range(seed, seed + seeds),
            rank=ranking,
            beside=named,
            drawn=drawn,
            drawn_may_win=strategy == "random",
            sweep=sweep,
        )


def place_reduce_cells(
    design: Design | str | Path,
    data: Data | str | Path,
    out: str | Path,
    *,
    recipe: str = AUTO,
    candidates: Candidates = "paper",
    reduce_cells: int = 2,
    settings: Mapping[str, Any] = NO_SETTINGS,
    exhaustive: str = "",
    seed: int = 0,
    resume: bool = False,
    device: str = AUTO,
    progress: Hears = None,
    resume_command: str = AGAIN,
    ray: str = HERE,
) -> PlacementResult:
    """Where the reduce cells of a design go (Algorithm 1): `.best`; the design that has them there is in the folder.

    Placements with more ReLUs than the design, as odd sizes can have them, are left out. `exhaustive` names a training
    recipe by which every placement is trained as well.

        >>> placed = sphynx.place_reduce_cells("design.json", "digits", "runs/placed")  # doctest: +SKIP
        >>> placed.best  # doctest: +SKIP
        (0, 1)
    """
    start = design if isinstance(design, Design) else Design.load(design)
    folder, chosen_device, voice = Path(out), pick_device(device), _voice(progress)
    trained_by = load_recipe(exhaustive) if exhaustive else None
    every_place = placements(start.depth, reduce_cells, candidates)
    places = placements_within(start, every_place, start.relus, f"the given design has {start.relus:,}")
    if len(places) < len(every_place):
        left_out = f"left out {len(every_place) - len(places)} of {len(every_place)} placements"
        voice.say(f"{left_out}: more ReLUs than the design ({start.relus:,})", stage="place")
    refuse_old_run(folder, "auto" if resume else "never")
    images = _opened(data)
    chosen = placement_recipe(recipe, settings, images)
    result = place(
        start, images, chosen, places, folder, seed=seed, device=chosen_device, resume=resume_command, voice=voice
    )
    if trained_by is None:
        return result
    retrain = retrainer(
        images,
        trained_by,
        folder / "exhaustive",
        seed=seed,
        device=chosen_device,
        voice=voice,
        resume_command=resume_command,
    )
    with open_sweep(ray, voice, resume_command) as sweep:
        return with_exhaustive(result, start, lambda placed: retrain(placed, trained_by.epochs), folder, sweep)


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
    resume_command: str = AGAIN,
    ray: str = HERE,
) -> TrainSummary:
    """Trains a design: `.accuracy` is that of the final epoch on test images, which are not looked at before.

    `recipe` is a name, a TOML file or a `Recipe`; "auto" suits it to the data; `settings` are values laid over it. A
    recipe that distils needs a `teacher`: "auto", a run, a model's name or a loaded network. `load(out)` is the network
    (of several seeds: `load(out/"seed-0")`). `started` hears which recipe it is; `processes` are those of torchrun.

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
                resume_command=resume_command,
                ray=ray,
            )
    if ray != HERE and processes.world > 1:
        raise InputError("torchrun and Ray cannot be combined", where="--ray", remedy="Use one of them.")
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
        voice=_voice(progress),
        processes=processes,
        resume_command=resume_command,
        tensorboard=tensorboard,
        views=kept_views,
    )
    if teacher is not None:
        taught_by = teacher.module if isinstance(teacher, TrainedNetwork) else teacher_for(str(teacher), job)
        job = job.taught_by(taught_by)
    with open_sweep(ray, _voice(progress), resume_command) as sweep:
        return train_seeds(job, seeds, sweep)


def _voice(progress: Hears) -> Voice:
    if isinstance(progress, Voice):
        return progress
    return Voice("quiet") if progress is None else Voice("quiet", progress)


def _opened(data: Data | str | Path) -> Data:
    return open_data(str(data)) if isinstance(data, str | Path) else data


def _check_teacher(teacher: TrainedNetwork | str | Path | None, views: Path | None, recipe: Recipe) -> None:
    if views is not None and not recipe.view_epochs:
        raise InputError(
            "the recipe does not keep views", where="--views", remedy="Give --view-epochs N, or leave it out."
        )
    if views is not None and views.is_file() and recipe.distillation != "none":
        return
    if (recipe.distillation != "none") != (teacher is not None):
        raise InputError(
            "distillation needs both a teacher and a loss", remedy="Give --teacher and --distillation squared (or kl)."
        )


def _named_cells(choices: Sequence[str | Path], nodes: int) -> dict[str, Genotype]:
    """By the name or path that was given. With other nodes a network would have other ReLUs."""
    named = {str(choice): find_cells(choice) for choice in choices}
    for choice, genotype in named.items():
        if genotype.nodes != nodes:
            raise InputError(
                f"these cells have N={genotype.nodes}, the search has {nodes}",
                where=f"--beside {choice}",
                remedy=f"Search with --nodes {genotype.nodes}, or leave them out.",
            )
    return named


def _ranking(
    data: Data, recipe: SearchRecipe, trained_by: Recipe, train: Callable[[Design, int], float], sweep: Sweep
) -> Callable[[Mapping[str, Genotype], Mapping[str, Genotype]], tuple[Ranked, ...]]:
    """Networks as deep and wide as the supernet, which reduce where it does."""

    def retrain(genotype: Genotype, epochs: int) -> float:
        design = Design(
            genotype,
            recipe.channels,
            recipe.depth,
            recipe.reduce_positions,
            Shape(*data.image),
            data.classes,
            conv_stack=recipe.conv_stack,
        )
        return train(design, epochs)

    def ranked(known: Mapping[str, Genotype], drawn: Mapping[str, Genotype]) -> tuple[Ranked, ...]:
        return rank(known, drawn, retrain, trained_by.epochs, sweep=sweep)

    return ranked
