"""The request to a design pipeline: the budget, the recipes of its stages, and what is searched.

`training_recipe`, `search_recipe` and `placement_recipe` say what the recipe `auto` is: for a pipeline, and that of the
training for a training by itself.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any, Literal, TypeVar

from sphynx.data.images import DataFace, held_out_count
from sphynx.errors import InputError
from sphynx.run.settings import AUTO
from sphynx.search.choices import Candidates
from sphynx.search.placement.candidates import Placement
from sphynx.search.placement.recipe import PlacementRecipe, load_placement_recipe
from sphynx.search.recipe import SearchRecipe
from sphynx.search.recipe import load_recipe as load_search_recipe
from sphynx.space.choices import ConvStack, Stem
from sphynx.space.genotype import Genotype
from sphynx.space.published_cells import SPHYNX
from sphynx.train.recipe import Recipe, load_recipe, with_epochs

FEW_IMAGES = 20_000  # up to here the recipes `small` suit, beyond `fast`
# What `small` takes for the 1,438 digits. Trained on 128 pictures of four digits in 16x16, 37.5 % of 32 test images
# were right after the 12 steps of its 6 epochs, 93.8 % after 40 steps, 96.9 % after 120 (one seed).
LEAST_STEPS = 132
LEAST_SEARCH_STEPS = 88  # of a cell search and of a placement: what `small` takes for the digits, and is tuned to

Searched = TypeVar("Searched", SearchRecipe, PlacementRecipe)


@dataclass(frozen=True)
class Request:
    """A request to the design pipeline."""

    relu_budget: int
    search: SearchRecipe
    placing: PlacementRecipe
    training: Recipe
    comparison: Recipe | None  # of every network of the final table; None: no table
    tolerance: float = 0.05
    stem: Stem = "small"
    conv_stack: ConvStack = "single"
    genotype: Genotype = SPHYNX  # where no cells are searched
    strategy: str = ""  # of a cell search; empty: none
    rivals: int = 0  # random cells that found ones must beat, beside the published ones; 0: found cells are taken
    placement: Literal["search", "fixed"] | Placement = "search"
    reduce_cells: int | None = None  # how many are placed by a search; None: `usual_reduce_cells`
    candidates: Candidates = "paper"
    seed: int = 0
    seeds: int = 1
    time_budget: float | None = None  # seconds

    def __post_init__(self) -> None:
        if self.training.distillation != "none" or (self.comparison and self.comparison.distillation != "none"):
            raise InputError(
                "the recipe distils, but no teacher is given",
                remedy="Design without distillation, then train the design with a teacher: "
                "sphynx train DESIGN --teacher auto --set distillation=squared.",
            )

    def to_json(self) -> dict[str, Any]:
        described = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        for name in ("search", "placing", "training", "comparison", "genotype"):
            described[name] = None if described[name] is None else described[name].to_json()
        return described


def training_recipe(name: str, overrides: Mapping[str, Any], data: DataFace) -> tuple[str, Recipe]:
    """The recipe and its name. For `auto` both are chosen by the data; what is given overrides what is chosen."""
    if name != AUTO:
        return name, load_recipe(name, overrides)
    name = recipe_for(data)
    if "epochs" in overrides:
        return name, load_recipe(name, overrides)
    # An epoch's steps depend on these.
    usual = load_recipe(name, {key: overrides[key] for key in ("batch_size", "held_out") if key in overrides})
    longer = long_enough(usual, len(data.train)).to_json()
    changed = {key: value for key, value in longer.items() if value != usual.to_json()[key]}
    return name, load_recipe(name, {**changed, **overrides})


def search_recipe(name: str, overrides: Mapping[str, Any], data: DataFace) -> SearchRecipe:
    """The same for a cell search."""
    recipe = load_search_recipe(recipe_for(data) if name == AUTO else name, overrides)
    return _lengthen_search(recipe, len(data.train)) if name == AUTO and "epochs" not in overrides else recipe


def placement_recipe(name: str, overrides: Mapping[str, Any], data: DataFace) -> PlacementRecipe:
    """The same for a placement."""
    recipe = load_placement_recipe(recipe_for(data) if name == AUTO else name, overrides)
    return _lengthen_search(recipe, len(data.train)) if name == AUTO and "epochs" not in overrides else recipe


def recipe_for(data: DataFace) -> str:
    """The name of the recipes that suit a data set of this size."""
    return "small" if len(data.train) <= FEW_IMAGES else "fast"


def long_enough(recipe: Recipe, images: int) -> Recipe:
    """The recipe in as many epochs as a small set needs: after a dozen steps not even batch norm knows its images."""
    epochs = epochs_of(LEAST_STEPS, images - held_out_count(images, recipe.held_out), recipe.batch_size)
    return with_epochs(recipe, epochs) if epochs > recipe.epochs else recipe


def epochs_of(steps: int, images: int, batch_size: int) -> int:
    """Return how many epochs over `images` have that many steps; each leaves out an incomplete batch."""
    return ceil(steps / (images // min(batch_size, images)))


def _lengthen_search(recipe: Searched, images: int) -> Searched:
    """Weights learn from one half of the images."""
    epochs = epochs_of(LEAST_SEARCH_STEPS, max(images // 2, 1), recipe.batch_size)
    return dataclasses.replace(recipe, epochs=max(epochs, recipe.epochs))
