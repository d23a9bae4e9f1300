"""Each strategy finds the planted cells in at least 9 of 10 seeds (see `planted`)."""

from __future__ import annotations

import pytest
import torch

from sphynx.search.recipe import SearchRecipe
from tests.search.planted import Planted, plant_images, plant_vectors, same_cells, search_planted

SEEDS = range(10)
COMMON = {
    "learning_rate": 0.002,
    "final_learning_rate": 0.001,
    "architecture_weight_decay": 0.0,
    "architecture_learning_rate": 0.1,
}


def found(strategy: str, recipe: SearchRecipe, steps: int, passes: int = 1, **size: object) -> int:
    hits = 0
    for seed in SEEDS:
        problem: Planted = plant_vectors(seed, recipe, **size)  # type: ignore[arg-type]
        search = search_planted(strategy, problem, seed, steps, passes)
        hits += same_cells(search.genotype(), problem.best)
    return hits
