"""How large an experiment is: smoke (digits, tiny networks, one epoch), fast (one GPU), full (the paper's settings).

Smoke proves that every part runs; its accuracies say nothing about the paper's claims, and every output says so.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from reproduction.experiments import Row
from sphynx.errors import InputError
from sphynx.report.naming import DATA_SETS
from sphynx.search.placement.recipe import PlacementRecipe, load_placement_recipe
from sphynx.search.recipe import SearchRecipe
from sphynx.search.recipe import load_recipe as load_search_recipe
from sphynx.space.design import Design
from sphynx.space.files import AnyDesign
from sphynx.space.genotype import Genotype
from sphynx.space.micro import MicroDesign
from sphynx.space.reference import ResNet18Design, Vgg11Design
from sphynx.space.tally import Shape
from sphynx.train.recipe import Recipe, load_recipe, with_epochs

SMOKE_CHANNELS, SMOKE_DEPTH, SMOKE_WIDTH = 2, 5, 4
LEAST_VGG_SIZE = 32


@dataclass(frozen=True)
class Scale:
    name: str
    meaning: str
    seeds: int
    search: str
    placement: str
    recipes: dict[str, str]  # data set -> training recipe
    epochs: dict[str, int] = field(default_factory=dict)  # data set -> shortened to
    overrides: dict[str, Any] = field(default_factory=dict)
    small: bool = False

    def recipe(self, row: Row) -> Recipe:
        return self.recipe_for(row.data, distilled=row.distilled)

    def recipe_for(self, data: str, *, distilled: bool) -> Recipe:
        learned = {"distillation": "squared"} if distilled else {}
        recipe = load_recipe(self.recipes[data], {**self.overrides, **learned})
        epochs = self.epochs.get(data)
        return recipe if epochs is None else with_epochs(recipe, epochs)

    def search_recipe(self, nodes: int) -> SearchRecipe:
        return load_search_recipe(self.search, {"nodes": nodes})

    def placement_recipe(self) -> PlacementRecipe:
        return load_placement_recipe(self.placement)

    def left_out(self, row: Row, image_size: int) -> str:
        """Why this scale does not run a row, or nothing."""
        if self.small and row.beta is not None and row.depth > SMOKE_DEPTH:
            return f"only D={SMOKE_DEPTH} at this scale"
        if row.network == "vgg11" and image_size < LEAST_VGG_SIZE:
            return f"VGG11 needs images of {LEAST_VGG_SIZE}x{LEAST_VGG_SIZE}"
        return ""


SCALES = {
    scale.name: scale
    for scale in (
        Scale(
            "smoke",
            "smoke scale: tiny networks, one epoch. It proves the path, not the claim",
            1,
            "smoke",
            "smoke",
            dict.fromkeys(DATA_SETS, "smoke"),
            overrides={"epochs": 1},
            small=True,
        ),
        Scale(
            "fast",
            "fast scale: the paper's networks, short schedules",
            1,
            "fast",
            "fast",
            {"cifar100": "fast", "tiny-imagenet": "fast", "imagenet": "paper-imagenet"},
            {"imagenet": 20},
        ),
        Scale(
            "full",
            "full scale: the paper's networks and settings",
            3,
            "paper",
            "paper",
            {"cifar100": "paper-cifar100", "tiny-imagenet": "paper-tiny", "imagenet": "paper-imagenet"},
        ),
    )
}


def scale_named(name: str) -> Scale:
    if name not in SCALES:
        raise InputError(f"there is no scale {name!r}", where="--scale", remedy=f"Use one of {', '.join(SCALES)}.")
    return SCALES[name]


def design_of(row: Row, image: Shape, classes: int, cells: Genotype | None) -> AnyDesign:
    """The row's network for such images; `cells` are those of a Sphynx or micro-search network."""
    if row.network == "resnet18":
        return ResNet18Design(row.channels, image, classes, "imagenet" if row.data == "imagenet" else "small")
    if row.network == "vgg11":
        return Vgg11Design(row.channels, image, classes)
    assert cells is not None
    if row.network == "micro":
        return MicroDesign(
            cells,
            row.channels,
            row.depth,
            image,
            classes,
            balancing="relu",
            share_relus=True,
            preprocessing_relus="reductions",
        )
    assert row.reduce_at is not None
    return Design(
        cells,
        row.channels,
        row.depth,
        row.reduce_at,
        image,
        classes,
        stem="imagenet" if row.data == "imagenet" else "small",
        conv_stack="paper",
        balancing=row.options.get("balancing", "relu"),  # type: ignore[arg-type]  # Design names what it allows
        convolution=row.options.get("convolution", "vanilla"),  # type: ignore[arg-type]  # and here
        inner_relus="inner_relus" in row.options,
    )


def shrunk(row: Row) -> Row:
    """At most two channels and five cells; the reduce cells keep their relative places."""
    if row.network in ("resnet18", "vgg11"):
        return dataclasses.replace(row, channels=min(row.channels, SMOKE_WIDTH))
    depth = min(row.depth, SMOKE_DEPTH)
    places = row.reduce_at
    if places is not None and depth < row.depth:
        first, second = (place * depth // row.depth for place in places)
        places = (first, min(max(second, first + 1), depth - 1))
    return dataclasses.replace(row, channels=min(row.channels, SMOKE_CHANNELS), depth=depth, reduce_at=places)
