"""Recipes: how a network is trained, as frozen values read from TOML; the learning rate that they give at a step.

The recipes that come with Sphynx lie in `recipes/`; a path of one's own works the same. Every value can be overridden.
`paper-*` hold every value of the paper's appendix tables.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sphynx.config import Fault, Shelf, setting
from sphynx.record import Record

Schedule = Literal["cosine", "step", "warmup-cosine"]
Distillation = Literal["none", "squared", "kl", "standardised"]
Balance = Literal["none", "weights", "sampling"]
Precision = Literal["fp32", "tf32", "bf16", "auto"]
MemoryFormat = Literal["auto", "contiguous", "channels_last"]
Acceleration = Literal["auto", "eager", "graph", "compile"]


@dataclass(frozen=True)
class Recipe(Record):
    """How a network is trained. `sphynx recipes` lists recipes by name; defaults are the paper's for CIFAR-100.

    >>> recipe = sphynx.Recipe(epochs=60, batch_size=512, learning_rate=0.2)
    >>> recipe.epochs, recipe.optimizer
    (60, 'sgd')
    """

    epochs: int = setting(600, "passes over the training images")
    batch_size: int = setting(96, "images per step, over all processes together")
    optimizer: Literal["sgd", "adamw", "muon"] = setting(
        "sgd", "sgd, adamw, or muon, which orthogonalises the updates of convolutions and is sgd for the rest"
    )
    learning_rate: float = setting(0.025, "the largest learning rate")
    final_learning_rate: float = setting(0.0, "learning rate at which the cosine ends")
    schedule: Schedule = setting("cosine", "cosine and step change per epoch, warmup-cosine per step")
    decay_epochs: tuple[int, ...] = setting((), "step: epochs after which the rate is multiplied")
    decay_factor: float = setting(0.1, "step: factor that the rate is multiplied by")
    warmup_epochs: float = setting(0.0, "warmup-cosine: epochs of linear rise")
    momentum: float = setting(0.9, "momentum of SGD; AdamW's first beta")
    nesterov: bool = setting(True, "Nesterov's momentum")
    kernel_learning_rate: float = setting(
        0.02, "muon: the largest rate of convolutions, which follows the same schedule"
    )
    kernel_momentum: float = setting(0.95, "muon: momentum of convolutions")
    weight_decay: float = setting(3e-4, "weight decay of the parameters that decay_on names")
    decay_on: Literal["all", "kernels"] = setting("all", "all parameters, or those of two or more dimensions only")
    grad_clip: float = setting(5.0, "largest norm of the gradient; 0 = no limit")
    drop_path: float = setting(0.2, "probability of dropping an edge at the end; it rises linearly from 0")
    auxiliary_weight: float = setting(0.4, "weight of the auxiliary head's loss; 0 = no such head")
    label_weight: float = setting(1.0, "weight of the labels' cross-entropy; 0 = learn from the teacher alone")
    label_smoothing: float = setting(0.0, "share of the target spread over all classes")
    crop: bool = setting(True, "pad by an eighth and crop at random")
    flip: bool = setting(True, "mirror with probability 1/2, where the data allow it")
    cutout: int = setting(0, "side of the square that is cut out; 0 = none")
    mixup: float = setting(0.0, "mix pairs of images by weights from Beta(mixup, mixup); 0 = none")
    cutmix: float = setting(0.0, "probability that a batch is mixed by a box (CutMix) instead")
    trivial_augment: bool = setting(False, "one random operation of TrivialAugment on each image")
    rotate: float = setting(0.0, "largest rotation of an image, in degrees, either way")
    scale: float = setting(0.0, "0.1: images are made larger or smaller by up to 10 %")
    contrast: float = setting(0.0, "0.2: contrast is raised or lowered by up to 20 %")
    brightness: float = setting(0.0, "0.1: brightness is raised or lowered by up to a tenth of white")
    balance: Balance = setting(
        "none",
        "for classes of unequal size: weights in the labels' loss, or sampling, each class as often as any other",
    )
    ema: float = setting(0.0, "decay of the weights' moving average, which is then evaluated and kept; 0 = none")
    norm_batches: int = setting(0, "batches to re-estimate batch norm's statistics from at the end; 0 = none")
    held_out: float = setting(0.0, "share of the training images held out to track accuracy")
    calibrate: bool = setting(
        False,
        "divide the logits by the temperature that fits the held-out images best, so that probabilities are calibrated",
    )
    test_each_epoch: bool = setting(False, "record test accuracy after every epoch; it does not influence anything")
    distillation: Distillation = setting("none", "squared error of logits, KL divergence of them or of their z-scores")
    distillation_weight: float = setting(1.0, "weight of the distillation term")
    distillation_reduction: Literal["sum", "mean"] = setting(
        "sum", "squared: sum over the classes, as the paper's formula has it, or mean, as its text says"
    )
    distillation_temperature: float = setting(4.0, "kl, standardised: temperature of both softmaxes")
    view_epochs: int = setting(
        0, "epochs of augmented images whose teacher's logits are kept and repeated; 0 = the teacher runs in every step"
    )
    precision: Precision = setting(
        "auto",
        "auto = bf16 autocast on a GPU, fp32 elsewhere; tf32 = fp32 except for operands of convolutions on a GPU",
    )
    memory_format: MemoryFormat = setting("auto", "auto = channels_last on a GPU except in fp32, contiguous elsewhere")
    acceleration: Acceleration = setting("auto", "how a step runs on a GPU; auto = graph (eager elsewhere)")

    def faults(self) -> list[str]:
        found: list[str] = [
            Fault(f"{name} must be at least {least}, not {getattr(self, name)}", name)
            for name, least in (
                ("epochs", 1),
                ("batch_size", 2),
                ("cutout", 0),
                ("mixup", 0),
                ("grad_clip", 0),
                ("weight_decay", 0),
                ("auxiliary_weight", 0),
                ("warmup_epochs", 0),
                ("final_learning_rate", 0),
                ("distillation_weight", 0),
                ("label_weight", 0),
                ("norm_batches", 0),
                ("view_epochs", 0),
                ("rotate", 0),
                ("scale", 0),
                ("contrast", 0),
                ("brightness", 0),
            )
            if getattr(self, name) < least
        ]
        found += [
            Fault(f"{name} must be at least 0 and below 1, not {getattr(self, name)}", name)
            for name in ("drop_path", "label_smoothing", "ema", "held_out", "momentum", "kernel_momentum")
            if not 0 <= getattr(self, name) < 1
        ]
        found += [
            Fault(f"{name} must be above 0, not {getattr(self, name)}", name)
            for name in ("learning_rate", "kernel_learning_rate", "decay_factor", "distillation_temperature")
            if not getattr(self, name) > 0
        ]
        if self.calibrate and not self.held_out:
            found.append(
                Fault("calibrate fits a temperature to held-out images: held_out is 0", "calibrate", "held_out")
            )
        if not 0 <= self.cutmix <= 1:
            found.append(Fault(f"cutmix must be between 0 and 1, not {self.cutmix}", "cutmix"))
        if self.view_epochs and self.distillation == "none":
            found.append(Fault("view_epochs keeps a teacher's logits, but distillation is none", "view_epochs"))
        if list(self.decay_epochs) != sorted(set(self.decay_epochs)):
            found.append(Fault(f"decay_epochs must ascend, not {list(self.decay_epochs)}", "decay_epochs"))
        if self.schedule == "step" and not self.decay_epochs:
            found.append(Fault("the step schedule needs decay_epochs, such as [30, 60]", "schedule", "decay_epochs"))
        if self.schedule == "warmup-cosine" and self.warmup_epochs > self.epochs:
            longer = f"warmup_epochs = {self.warmup_epochs} is longer than epochs = {self.epochs}"
            found.append(Fault(longer, "warmup_epochs", "epochs", "schedule"))
        if self.optimizer != "adamw" and self.nesterov and self.momentum == 0:
            found.append(Fault("Nesterov's momentum needs momentum above 0", "momentum", "nesterov", "optimizer"))
        if self.label_weight == 0 and self.distillation == "none":
            nothing = "label_weight = 0 leaves nothing to learn from without distillation"
            found.append(Fault(nothing, "label_weight", "distillation"))
        return found

    @property
    def auxiliary_head(self) -> bool:
        """It learns from labels only."""
        return self.auxiliary_weight > 0 and self.label_weight > 0

    def undistilled(self) -> Recipe:
        """The same, from labels alone: for the teacher."""
        return dataclasses.replace(self, distillation="none", label_weight=1.0, view_epochs=0)


SHELF = Shelf(Recipe, "sphynx.train", "training")


def load_recipe(name: str, overrides: Mapping[str, Any] | None = None) -> Recipe:
    """One of Sphynx's own by name, or a file's path."""
    return SHELF.load(name, overrides)


def with_epochs(recipe: Recipe, epochs: int) -> Recipe:
    """The recipe in another number of epochs: warm-up and decays keep their share of it."""
    share = epochs / recipe.epochs
    decays = tuple(sorted({max(1, round(epoch * share)) for epoch in recipe.decay_epochs}))
    return dataclasses.replace(recipe, epochs=epochs, warmup_epochs=recipe.warmup_epochs * share, decay_epochs=decays)


def learning_rate(recipe: Recipe, epoch: int, batch: int = 0, batches: int = 1) -> float:
    """At a step. The paper's cosine and step schedules change at epoch boundaries only."""
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
