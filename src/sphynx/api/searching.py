"""Cells for a data set, places for a design's reduce cells, ReLUs for a stream's blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from sphynx.api.data import as_data
from sphynx.config import Keywords
from sphynx.data.images import Data
from sphynx.design.request import placement_recipe, search_recipe
from sphynx.design.retraining import retrainer
from sphynx.design.taught import taught_job, taught_lessons
from sphynx.errors import InputError
from sphynx.program.cost.link import parse_seconds
from sphynx.run.settings import AUTO
from sphynx.run.work import Work, open_work
from sphynx.search.allocation.allocate import AllocationResult, allocate, allocate_by_gates, with_accuracies
from sphynx.search.allocation.candidates import Budget, allocations, latency_budget, relu_budget
from sphynx.search.objective import Objective
from sphynx.search.placement.candidates import placements, placements_within
from sphynx.search.placement.place import PlacementResult, place, with_exhaustive
from sphynx.search.placement.recipe import load_placement_recipe
from sphynx.search.ranking import Ranked, random_cells, rank
from sphynx.search.recipe import SearchRecipe
from sphynx.search.recipe import load_recipe as load_search_recipe
from sphynx.search.search import SearchResult
from sphynx.search.search import search_cells as search_one_seed
from sphynx.search.seeds import SearchSummary, search_seeds
from sphynx.search.settings import AllocationSettings, CellSettings, PlacementSettings
from sphynx.search.supernet.cellspace import CellSpace
from sphynx.space.artifact import refuse_trained
from sphynx.space.design import Design
from sphynx.space.files import load_any_design
from sphynx.space.genotype import Genotype
from sphynx.space.planner import parse_relu_budget
from sphynx.space.prices import load_prices
from sphynx.space.published_cells import find_cells
from sphynx.space.stream import StreamDesign
from sphynx.space.tally import Shape
from sphynx.train.recipe import Recipe, load_recipe

TRAINING = "training."  # what the names of the training recipe's settings begin with
HELD_OUT = 0.1  # the share that a search which listens to a teacher learns the allocation from


@Keywords(CellSettings).function
def search_cells(data: Data | str | Path, settings: CellSettings) -> SearchSummary:
    """Normal and reduce cells for a data set: `.chosen`, with every seed's `.results` and their `.spread`.

    `strategy` is a name, or a class of your own with the interface `sphynx.search.strategies.strategy.Strategy`
    (examples/06_own_search_strategy.py). With a `rank_recipe` found cells are ranked by short trainings, together with
    `random_cells` random ones and those named in `rank_with`. `costs` of operations count by `cost_weight`.

        >>> found = sphynx.search_cells("digits", out="runs/cells", strategy="gaea")  # doctest: +SKIP
        >>> found.chosen.save("genotype.json")  # doctest: +SKIP
    """
    trained_by, objective = check_cell_search(settings)
    out, seed = Path(settings.out), settings.seed
    with open_work(settings) as work:
        images = as_data(data)
        recipe = search_recipe(settings.recipe, settings.settings, images)
        named = _find_cells(settings, recipe.nodes)

        def search(number: int, where: Path) -> SearchResult:
            return search_one_seed(images, settings.strategy, recipe, where, work.piece(number), objective=objective)

        return search_seeds(
            search,
            out,
            range(seed, seed + settings.seeds),
            rank=None if trained_by is None else _ranking(images, recipe, trained_by, out / "rank", work),
            beside=named,
            drawn=random_cells(CellSpace(recipe.nodes), settings.random_cells, seed),
            drawn_may_win=settings.strategy == "random",
            sweep=work.sweep,
        )


def check_cell_search(settings: CellSettings) -> tuple[Recipe | None, Objective]:
    """Tell what is wrong before the data are read, which can take long; the recipe of a ranking, and the objective."""
    if (settings.random_cells or settings.rank_with) and not settings.rank_recipe:
        raise InputError(
            "these cells are only used in a ranking, and `rank_recipe` is not given",
            where="`random_cells`, `rank_with`",
            remedy='Give `rank_recipe="fast"`, or leave both out.',
        )
    if settings.recipe != AUTO:
        load_search_recipe(settings.recipe, settings.settings)
    objective = Objective(operation_costs=dict(settings.costs), cost_weight=settings.cost_weight)
    return load_recipe(settings.rank_recipe) if settings.rank_recipe else None, objective


@Keywords(PlacementSettings).function
def place_reduce_cells(
    design: Design | str | Path, data: Data | str | Path, settings: PlacementSettings
) -> PlacementResult:
    """Choose where a design's reduce cells go (Algorithm 1): `.best`; the design that has them there is in the folder.

    Placements with more ReLUs than the design, which odd sizes can have, are left out. `exhaustive` names a training
    recipe by which every placement is trained as well.

        >>> placed = sphynx.place_reduce_cells("design.json", "digits", out="runs/placed")  # doctest: +SKIP
        >>> placed.best  # doctest: +SKIP
        (0, 1)
    """
    start, out = read_start(design), Path(settings.out)
    trained_by = check_placement(settings)
    every_place = placements(start.depth, settings.reduce_cells, settings.candidates)
    places = placements_within(start, every_place, start.relus, f"the given design has {start.relus:,}")
    with open_work(settings) as work:
        if len(places) < len(every_place):
            left_out = f"left out {len(every_place) - len(places)} of {len(every_place)} placements"
            work.voice.say(f"{left_out}: more ReLUs than the design ({start.relus:,})", stage="place")
        images = as_data(data)
        recipe = placement_recipe(settings.recipe, settings.settings, images)
        result = place(start, images, recipe, places, out, work)
        if trained_by is None:
            return result
        retrain = retrainer(images, trained_by, out / "exhaustive", work)
        return with_exhaustive(result, start, partial(retrain, epochs=trained_by.epochs), out, work.sweep)


def read_start(design: Design | str | Path) -> Design:
    if isinstance(design, Design):
        return design
    refuse_trained(Path(design))
    return Design.load(design)


def check_placement(settings: PlacementSettings | AllocationSettings) -> Recipe | None:
    """Tell the faults of recipes before the data are read; the recipe by which all candidates are trained as well."""
    if settings.recipe != AUTO:
        load_placement_recipe(settings.recipe, _without_training(settings))
    return load_recipe(settings.exhaustive) if settings.exhaustive else None


@Keywords(AllocationSettings).function
def allocate_relus(
    design: StreamDesign | str | Path, data: Data | str | Path, settings: AllocationSettings
) -> AllocationResult:
    """Choose how many rectified channels each block of a stream gets of a budget: `.best`; its design is in the folder.

    The budget is the design's own ReLUs, a `relu_budget`, or a `latency_budget` by the `prices` of the design's blocks.
    With a `training` recipe the weights listen to a teacher; `settings` called training.NAME are values of it.

        >>> found = sphynx.allocate_relus("stream.json", "cifar100", out="runs/allocated")  # doctest: +SKIP
        >>> found.best.stages, found.best.relus  # doctest: +SKIP
    """
    start, out = read_stream(design), Path(settings.out)
    trained_by = check_placement(settings)
    budget, lessons_by = check_allocation(start, settings)
    candidates = allocations(start, budget, parts=settings.parts, randoms=settings.randoms, seed=settings.seed)
    with open_work(settings) as work:
        images = as_data(data)
        recipe = placement_recipe(settings.recipe, _without_training(settings), images)
        lessons = None
        if lessons_by is not None:
            views = None if settings.views is None else Path(settings.views)
            lessons = taught_lessons(taught_job(start, images, lessons_by, out, views, settings.teacher, work))
        if settings.method == "gates":
            return allocate_by_gates(start, images, recipe, budget, out, work, factor=settings.factor, lessons=lessons)
        result = allocate(candidates, images, recipe, budget, out, work, lessons=lessons)
        if trained_by is None:
            return result
        retrain = retrainer(images, trained_by, out / "exhaustive", work)
        return with_accuracies(result, candidates, partial(retrain, epochs=trained_by.epochs), out, work.sweep)


def read_stream(design: StreamDesign | str | Path) -> StreamDesign:
    start = load_any_design(Path(design)) if isinstance(design, str | Path) else design
    if isinstance(start, StreamDesign):
        return start
    raise InputError(
        "ReLUs can only be allocated in a stream network",
        where=str(design) if isinstance(design, str | Path) else "design",
        remedy="Plan one: sphynx plan --family stream.",
    )


def check_allocation(design: StreamDesign, settings: AllocationSettings) -> tuple[Budget, Recipe | None]:
    """Tell what is wrong before the data are read; the budget, and the recipe of a search with a teacher."""
    if settings.exhaustive and settings.method == "gates":
        raise InputError(
            "the method gates has no candidates to train",
            where="`exhaustive`",
            remedy='Leave it out, or give `method="gumbel"`.',
        )
    if (settings.views or settings.teacher) and not settings.training:
        raise InputError(
            "a teacher needs a training recipe", where="`views`, `teacher`", remedy='Give `training="frontier"`.'
        )
    values = {name.removeprefix(TRAINING): v for name, v in settings.settings.items() if name.startswith(TRAINING)}
    lessons_by = load_recipe(settings.training, {"held_out": HELD_OUT, **values}) if settings.training else None
    return _budget(design, settings), lessons_by


def _budget(design: StreamDesign, settings: AllocationSettings) -> Budget:
    relus, latency, prices = settings.relu_budget, settings.latency_budget, settings.prices
    if (relus and latency) or (latency is None) != (prices is None):
        raise InputError(
            "the budget must be in ReLUs, or in seconds with a table of prices",
            where="`latency_budget`, `prices`",
            remedy="Give `relu_budget`, or both `latency_budget` and `prices`.",
        )
    if latency is not None and prices is not None:
        return latency_budget(design, parse_seconds(latency), load_prices(Path(prices)), settings.multiple)
    return relu_budget(design, design.relus if relus is None else parse_relu_budget(relus), settings.multiple)


def _without_training(settings: PlacementSettings | AllocationSettings) -> dict[str, object]:
    return {name: value for name, value in settings.settings.items() if not name.startswith(TRAINING)}


def _find_cells(settings: CellSettings, nodes: int) -> dict[str, Genotype]:
    """Find cells by the names or paths that were given. With other nodes a network would have other ReLUs."""
    named = {str(choice): find_cells(choice) for choice in settings.rank_with}
    for choice, genotype in named.items():
        if genotype.nodes != nodes:
            raise InputError(
                f"these cells have N={genotype.nodes} nodes, the search has N={nodes}",
                where=f'`rank_with="{choice}"`',
                remedy=f'Search with `settings={{"nodes": {genotype.nodes}}}`, or leave them out.',
            )
    return named


def _ranking(
    data: Data, recipe: SearchRecipe, trained_by: Recipe, out: Path, work: Work
) -> Callable[[Mapping[str, Genotype], Mapping[str, Genotype]], tuple[Ranked, ...]]:
    """Networks of the supernet's depth and first width, which reduce where it does and widen as final networks do."""
    train = retrainer(data, trained_by, out, work)

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
        return rank(known, drawn, retrain, trained_by.epochs, sweep=work.sweep)

    return ranked
