"""The learning rate at a step. The paper's cosine and step schedules change at epoch boundaries only."""

from __future__ import annotations

import math

from sphynx.train.recipe import Recipe


def learning_rate(recipe: Recipe, epoch: int, batch: int = 0, batches: int = 1) -> float:
    if recipe.schedule == "cosine":
        return _cosine(recipe, epoch / recipe.epochs)
    if recipe.schedule == "step":
        return recipe.learning_rate * recipe.decay_factor ** sum(epoch >= at for at in recipe.decay_epochs)
    now = epoch + batch / batches
    if now < recipe.warmup_epochs:
        return recipe.learning_rate * (now + 1 / batches) / (recipe.warmup_epochs + 1 / batches)
    rest = recipe.epochs - recipe.warmup_epochs
    return _cosine(recipe, (now - recipe.warmup_epochs) / rest if rest else 1.0)


def drop_probability(recipe: Recipe, epoch: int) -> float:
    return recipe.drop_path * epoch / recipe.epochs


def _cosine(recipe: Recipe, progress: float) -> float:
    span = recipe.learning_rate - recipe.final_learning_rate
    return recipe.final_learning_rate + span * (1 + math.cos(math.pi * progress)) / 2
