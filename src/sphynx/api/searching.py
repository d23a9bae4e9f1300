"""Cells for a data set, and where the reduce cells of a design go. `stages` says what both calls have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sphynx.api.stages import Hears, opened, voice_of
from sphynx.data.images import Data
from sphynx.design.ordering import NO_SETTINGS
from sphynx.design.request import placement_recipe, search_recipe
from sphynx.design.retraining import retrainer
from sphynx.errors import InputError
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
from sphynx.space.design import Design
from sphynx.space.genotype import Genotype
from sphynx.space.published_cells import find_cells
from sphynx.space.tally import Shape
from sphynx.train.processes import pick_device
from sphynx.train.recipe import AUTO, Recipe, load_recipe

NO_PRICES: Mapping[str, float] = MappingProxyType({})


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
    rank_with: Sequence[str | Path] = (),
    prices: Mapping[str, float] = NO_PRICES,
    price_weight: float = 0.0,
    resume: bool = False,
    device: str = AUTO,
    progress: Hears = None,
    ray: str = HERE,
) -> SearchSummary:
    """Normal and reduce cells for a data set: `.chosen`, with every seed's `.results` and their `.spread`.

    `strategy` is a name, or a class of your own with the interface `sphynx.search.strategies.strategy.Strategy`
    (examples/06_own_search_strategy.py). With a `rank_recipe` found cells are ranked by short trainings, together with
    `random_cells` random ones and those named in `rank_with`. `prices` of operations count by `price_weight`.

        >>> found = sphynx.search_cells("digits", "runs/cells", strategy="gaea")  # doctest: +SKIP
        >>> found.chosen.save("genotype.json")  # doctest: +SKIP
    """
    folder, chosen_device, voice = Path(out), pick_device(device), voice_of(progress)
    if (random_cells or rank_with) and not rank_recipe:
        raise InputError(
            "these cells are only used in a ranking, and `rank_recipe` is not given",
            where="`random_cells`, `rank_with`",
            remedy='Give `rank_recipe="fast"`, or leave both out.',
        )
    refuse_old_run(folder, "auto" if resume else "never")
    images = opened(data)
    chosen = search_recipe(recipe, settings, images)
    drawn = draw_cells(CellSpace(chosen.nodes), random_cells, seed)
    named = _find_cells(rank_with, chosen.nodes)
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
        )
    )
    with open_sweep(ray, voice) as sweep:
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
    ray: str = HERE,
) -> PlacementResult:
    """Choose where a design's reduce cells go (Algorithm 1): `.best`; the design that has them there is in the folder.

    Placements with more ReLUs than the design, which odd sizes can have, are left out. `exhaustive` names a training
    recipe by which every placement is trained as well.

        >>> placed = sphynx.place_reduce_cells("design.json", "digits", "runs/placed")  # doctest: +SKIP
        >>> placed.best  # doctest: +SKIP
        (0, 1)
    """
    start = design if isinstance(design, Design) else Design.load(design)
    folder, chosen_device, voice = Path(out), pick_device(device), voice_of(progress)
    trained_by = load_recipe(exhaustive) if exhaustive else None
    every_place = placements(start.depth, reduce_cells, candidates)
    places = placements_within(start, every_place, start.relus, f"the given design has {start.relus:,}")
    if len(places) < len(every_place):
        left_out = f"left out {len(every_place) - len(places)} of {len(every_place)} placements"
        voice.say(f"{left_out}: more ReLUs than the design ({start.relus:,})", stage="place")
    refuse_old_run(folder, "auto" if resume else "never")
    images = opened(data)
    chosen = placement_recipe(recipe, settings, images)
    result = place(start, images, chosen, places, folder, seed=seed, device=chosen_device, voice=voice)
    if trained_by is None:
        return result
    retrain = retrainer(
        images,
        trained_by,
        folder / "exhaustive",
        seed=seed,
        device=chosen_device,
        voice=voice,
    )
    with open_sweep(ray, voice) as sweep:
        return with_exhaustive(result, start, lambda placed: retrain(placed, trained_by.epochs), folder, sweep)


def _find_cells(choices: Sequence[str | Path], nodes: int) -> dict[str, Genotype]:
    """Find cells by the names or paths that were given. With other nodes a network would have other ReLUs."""
    named = {str(choice): find_cells(choice) for choice in choices}
    for choice, genotype in named.items():
        if genotype.nodes != nodes:
            raise InputError(
                f"these cells have N={genotype.nodes} nodes, the search has N={nodes}",
                where=f'`rank_with="{choice}"`',
                remedy=f'Search with `settings={{"nodes": {genotype.nodes}}}`, or leave them out.',
            )
    return named


def _ranking(
    data: Data, recipe: SearchRecipe, trained_by: Recipe, train: Callable[[Design, int], float], sweep: Sweep
) -> Callable[[Mapping[str, Genotype], Mapping[str, Genotype]], tuple[Ranked, ...]]:
    """Networks of the supernet's depth and first width, which reduce where it does and widen as final networks do."""

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
