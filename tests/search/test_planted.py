"""Each strategy finds the planted cells in all seeds but one (see `planted`): of 2, and in slow tests of 5 or 10."""

from __future__ import annotations

from typing import Any

import pytest

from sphynx.search.recipe import SearchRecipe
from tests.search.planted import Planted, plant_images, plant_vectors, same_cells, search_planted

TWO_SEEDS_OR_MORE = pytest.mark.parametrize("many", [False, pytest.param(True, marks=pytest.mark.slow)])
COMMON: dict[str, Any] = {
    "learning_rate": 0.002,
    "final_learning_rate": 0.001,
    "architecture_weight_decay": 0.0,
    "architecture_learning_rate": 0.2,
    "pc_warmup": 0.0,
    "pc_channel_divisor": 2,
}
# strategy: (steps per epoch, passes over the held-out batches, recipe, problem)
PROBLEMS: dict[str, tuple[int, int, dict[str, Any], dict[str, Any]]] = {
    "darts": (10, 1, {"epochs": 2}, {}),
    "darts-2nd": (10, 1, {"epochs": 2}, {}),
    "gaea": (10, 1, {"epochs": 2, "gaea_learning_rate": 10.0}, {}),
    "gdas": (16, 1, {"epochs": 4, "architecture_learning_rate": 0.15}, {}),
    # REINFORCE on noisy rewards needs samples: one intermediate node, and cells of one operation.
    "enas": (
        4,
        12,
        {
            "epochs": 2,
            "enas_learning_rate": 0.01,
            "enas_hidden": 16,
            "enas_tanh_constant": 2.5,
            "enas_operation_tanh_reduce": 1.0,
            "enas_baseline_decay": 0.9,
            "enas_derive_samples": 16,
        },
        {"nodes": 4, "one_operation": True},
    ),
    # 81 genotypes: enough draws meet each.
    "random": (5, 1, {"epochs": 1, "random_candidates": 400}, {"nodes": 4}),
}


def finds(strategy: str, problem: Planted, seed: int, steps: int, passes: int = 1) -> bool:
    return same_cells(search_planted(strategy, problem, seed, steps, passes).genotype(), problem.best)


@TWO_SEEDS_OR_MORE
@pytest.mark.parametrize("strategy", PROBLEMS)
def test_finds_the_planted_cells(strategy: str, many: bool) -> None:
    steps, passes, values, size = PROBLEMS[strategy]
    recipe, seeds = SearchRecipe(**{**COMMON, **values}), (10 if strategy in ("darts", "gaea") else 5) if many else 2
    hits = sum(finds(strategy, plant_vectors(seed, recipe, **size), seed, steps, passes) for seed in range(seeds))
    assert hits >= seeds - 1


@TWO_SEEDS_OR_MORE
def test_pc_darts_finds_the_planted_cells_through_half_of_the_channels(many: bool) -> None:
    recipe, seeds = SearchRecipe(**{**COMMON, "epochs": 2}), 5 if many else 2
    hits = sum(finds("pc-darts", plant_images(seed, recipe, divisor=2), seed, 9) for seed in range(seeds))
    assert hits >= seeds - 1


def test_enas_learns_rather_than_draws_luckily() -> None:
    """Its controller's samples, not only the best of them, come to use the planted operation."""
    steps, passes, values, size = PROBLEMS["enas"]
    recipe = SearchRecipe(**{**COMMON, **values})
    problem = plant_vectors(1, recipe, **size)
    strengths = search_planted("enas", problem, 1, steps, passes).strengths()["normal"]
    planted = problem.space.candidates.index(problem.best.normal[0][0].operation)
    assert strengths[:, planted].sum() > 0.6 * strengths.sum()
