"""The augmentation that a recipe asks for, as batches know it."""

from __future__ import annotations

from sphynx.data.batches import Augmentation
from sphynx.train.recipe import Recipe


def augmentation_of(recipe: Recipe, *, mirrored: bool) -> Augmentation:
    """`mirrored`: whether a mirrored image of these data keeps its class."""
    return Augmentation(
        crop=recipe.crop,
        flip=recipe.flip and mirrored,
        cutout=recipe.cutout,
        mixup=recipe.mixup,
        cutmix=recipe.cutmix,
        trivial=recipe.trivial_augment,
        rotate=recipe.rotate,
        scale=recipe.scale,
        contrast=recipe.contrast,
        brightness=recipe.brightness,
    )
