"""The task of a reduction method, and its choice: a design within the budget, and weights to begin with."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
from torch import nn

from sphynx.data.batches import Augmentation, Batches
from sphynx.data.images import Data, ImageSet
from sphynx.errors import InputError
from sphynx.network.build import AnyNetwork, build_network
from sphynx.network.reduced import ReducedNetwork, describe_layers, rectified_layers
from sphynx.reduce.settings import ReduceSettings
from sphynx.run.progress import QUIET, Voice
from sphynx.space.files import AnyDesign
from sphynx.space.reduced import ReducedDesign
from sphynx.space.tally import Shape
from sphynx.train.augmenting import augmentation_of
from sphynx.train.loop import HELD_OUT_SEED
from sphynx.train.recipe import Recipe
from sphynx.train.views import VIEW_SEED, Views

CPU = torch.device("cpu")


@dataclass(frozen=True, eq=False)
class Task:
    """`original` has its logits in the order of the data's classes, and its images are normalised as the data say."""

    original: AnyNetwork
    data: Data
    relu_budget: int
    settings: ReduceSettings
    recipe: Recipe  # of the training that follows: a method's own steps augment and distil as it says
    out: Path  # of the method's own work
    seed: int = 0
    device: torch.device = CPU
    resume: bool = False
    voice: Voice = QUIET
    views: Views | None = None  # the original's logits, where the recipe keeps them

    @cached_property
    def layers(self) -> Mapping[str, Shape]:
        """The original's ReLU layers, in the order in which they run."""
        if isinstance(self.original, ReducedNetwork):
            raise InputError(
                "it is a reduced network already",
                where=self.original.design.name or "network",
                remedy="Reduce the original, or use the method stream.",
            )
        return rectified_layers(self.original, self.original.design.image)

    @property
    def all_relus(self) -> int:
        return sum(shape.size for shape in self.layers.values())

    @cached_property
    def fitted_and_held_out(self) -> tuple[ImageSet, ImageSet]:
        """Training images to learn from, and those by which a method chooses."""
        return self.data.train.split(self.settings.held_out, HELD_OUT_SEED)

    def batches(self, *, augmented: bool = True) -> Batches:
        recipe, data = self.recipe, self.data
        augmentation = augmentation_of(recipe, mirrored=data.mirrored)
        viewed = augmented and self.views is not None
        return Batches(
            self.fitted_and_held_out[0],
            recipe.batch_size,
            device=self.device,
            mean=data.mean,
            std=data.std,
            seed=VIEW_SEED if viewed else self.seed,
            augmentation=augmentation if augmented else Augmentation(),
            period=recipe.view_epochs if viewed else 0,
        )

    def described(self, kinds: Mapping[str, str], name: str) -> ReducedDesign:
        """The original's design with these letters for its ReLU layers."""
        base = self.original.design
        assert not isinstance(base, ReducedDesign)
        return ReducedDesign(base, describe_layers(self.layers, kinds), name)

    def reduced(self, kinds: Mapping[str, str], weights: nn.Module | None = None) -> ReducedNetwork:
        """The network of these letters with the original's weights, or those of a copy with other activations."""
        design = self.described(kinds, self.settings.method)
        made = build_network(design)
        assert isinstance(made, ReducedNetwork)
        copy_weights(weights or self.original, made)
        return made.to(self.device)

    def within(self, out: str) -> Task:
        """The same in a folder below."""
        return dataclasses.replace(self, out=self.out / out)


@dataclass(frozen=True, eq=False)
class Choice:
    design: AnyDesign
    start: AnyNetwork | None = None  # None: random weights


def copy_weights(source: nn.Module, target: ReducedNetwork) -> None:
    """Copy the weights that both have: a target's squares keep their own coefficients where the source has none."""
    known = source.state_dict()
    found = {name: known.get(name, known.get(name.removeprefix("inner."))) for name in target.state_dict()}
    target.load_state_dict({name: tensor for name, tensor in found.items() if tensor is not None}, strict=False)
