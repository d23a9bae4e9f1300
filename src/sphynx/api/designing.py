"""From data and a ReLU budget to a trained network, in one call. Stage by stage: `searching`, `training`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sphynx.api.stages import Hears, opened, voice_of
from sphynx.data.images import Data
from sphynx.design.ordering import NO_SETTINGS, Places, order
from sphynx.design.pipeline import Pipeline
from sphynx.design.results import DesignResult
from sphynx.run.resuming import refuse_old_run
from sphynx.run.sweep import HERE, open_sweep
from sphynx.search.choices import Candidates, StrategyName
from sphynx.space.choices import ConvStack, StemChoice
from sphynx.space.genotype import Genotype
from sphynx.train.processes import pick_device
from sphynx.train.recipe import AUTO


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
    ray: str = HERE,
) -> DesignResult:
    """The whole method: plan, cells, places of the reduce cells, training, and a comparison. `load(out)` is the result.

    Cells are the published ones unless a `strategy` searches for them; found ones are ranked together with
    `random_cells` random ones. `reduce_at` is "search", "fixed" (D/3 and 2D/3) or positions. `compare` is the recipe of
    the networks with other cells: "same", "none" or a name. `settings` are values of the stages' recipes,
    {"training.epochs": 4}. `time_budget`, seconds or "15m", scales the epochs. `started` is told the pipeline, and what
    it leaves out.

        >>> result = sphynx.design_network("digits", relu_budget="1k", out="runs/designed")  # doctest: +SKIP
        >>> result.accuracy, result.reduce_positions  # doctest: +SKIP
    """
    folder, chosen_device = Path(out), pick_device(device)
    refuse_old_run(folder, "auto" if resume else "never")
    images = opened(data)
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
    voice = voice_of(progress)
    with open_sweep(ray, voice) as sweep:
        pipeline = Pipeline(
            asked.request,
            images,
            folder,
            device=chosen_device,
            resume=resume,
            voice=voice,
            sweep=sweep,
        )
        started(pipeline, asked.notes)
        return pipeline.run()
