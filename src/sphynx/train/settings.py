"""The settings of a training, besides its design and its data: keywords of the library, flags of the verb."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sphynx.config import setting
from sphynx.run.settings import AUTO, SweepSettings
from sphynx.train.recipe import Recipe

if TYPE_CHECKING:
    from sphynx.network.trained import TrainedNetwork


@dataclass(frozen=True, kw_only=True)
class TrainSettings(SweepSettings):
    recipe: str | Recipe = setting(AUTO, "A recipe's name, or a TOML file; auto chooses by the data.")
    settings: Mapping[str, Any] = setting({}, "A value of the recipe, such as epochs=10. May be repeated.")
    seeds: int = setting(1, "Number of seeds; mean and spread are reported.", least=1)
    teacher: TrainedNetwork | str | Path | Sequence[TrainedNetwork | str | Path] | None = setting(
        None,
        "auto (trains the same cells with ReLUs inside), a trained run, or a model's name; several, with commas "
        "between them, teach by the mean of their logits.",
    )
    views: str | Path | None = setting(
        None,
        "A file of a teacher's logits, for recipes with view_epochs: created if missing; if it exists, no teacher is "
        "needed. [default: views.safetensors in the run folder]",
    )
    tensorboard: bool = setting(False, "Write TensorBoard events as well.")
