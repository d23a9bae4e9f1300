"""The settings of a reduction: frozen records, whose fields say what they mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from sphynx.config import Fault, parse_numbers, setting
from sphynx.record import Record
from sphynx.run.settings import AUTO, WorkSettings
from sphynx.train.recipe import Recipe

Method = Literal[
    "auto", "stream", "channels", "delphi", "safenet", "deepreduce", "cryptonas", "snl", "senet", "autorep"
]
Backend = Literal["gmw", "gc"]


@dataclass(frozen=True)
class ReduceSettings(Record):
    """How a network is reduced. The training that follows has a recipe of its own.

    >>> sphynx.ReduceSettings(method="channels", rounds=4).search_epochs
    10
    """

    method: Method = setting("auto", "auto tries stream and channels, and keeps the better")
    backend: Backend = setting("gmw", "backend that prices are computed for: squares are cheap with gc only")
    search_epochs: int = setting(10, "epochs in which a method learns which ReLUs stay, before the training")
    search_rate: float = setting(0.01, "learning rate of the weights in those epochs")
    mask_rate: float = setting(
        0.0, "Adam's learning rate for masks; 0 = a mask can fall from 1 to 0 in a tenth of the steps"
    )
    rounds: int = setting(
        8, "channels: plans on the way to the budget, each from the prices and sensitivities at that point"
    )
    batches: int = setting(8, "batches of training images that a sensitivity is measured on")
    held_out: float = setting(0.1, "share of the training images that methods and networks are compared on")
    other_prices: float = setting(
        0.1, "channels: weight of truncations and squares beside that of ReLUs, which alone have a budget"
    )

    def by(self, method: Method) -> ReduceSettings:
        return replace(self, method=method)

    def faults(self) -> list[str]:
        found: list[str] = [
            Fault(f"{name} must be at least {least}, not {getattr(self, name)}", name)
            for name, least in (
                ("search_epochs", 0),
                ("rounds", 1),
                ("batches", 1),
                ("mask_rate", 0),
                ("other_prices", 0),
            )
            if getattr(self, name) < least
        ]
        if not self.search_rate > 0:
            found.append(Fault(f"search_rate must be above 0, not {self.search_rate}", "search_rate"))
        if not 0 < self.held_out < 1:
            found.append(Fault(f"held_out must be between 0 and 1, not {self.held_out}", "held_out"))
        return found


@dataclass(frozen=True, kw_only=True)
class ReductionSettings(WorkSettings):
    """The keywords of `sphynx.reduce_network`; those of a method are `ReduceSettings`."""

    relu_budget: int | str | None = setting(None, "50k, 1.2M or 51200.")
    latency_budget: float | str | None = setting(
        None,
        "Instead of `relu_budget`: as many ReLUs as fit an estimated online latency such as 200ms.",
    )
    link: str = setting(
        "lan", "With a latency: loopback, lan (0.5 ms, 1 Gbit/s), wan (40 ms, 100 Mbit/s), or one such as 20ms,300Mbit."
    )
    method: Method = setting("auto", "auto tries stream and channels, and keeps the better.")
    mean: Sequence[float] | float | None = setting(
        None,
        "For a network of yours: subtracted from pixel/255; one number, or one per channel. [default: 0]",
        written_as=str,
        parse=parse_numbers,
    )
    std: Sequence[float] | float | None = setting(
        None,
        "For a network of yours: the divisor of the result; one number, or one per channel. [default: 1]",
        written_as=str,
        parse=parse_numbers,
    )
    recipe: str | Recipe = setting(AUTO, "A recipe's name, or a TOML file; auto chooses by the data.")
    views: str | Path | None = setting(
        None,
        "A file of the original's logits of augmented images, for recipes with view_epochs; created if missing, so "
        "that several reductions of one network can share it. [default: views.safetensors in the run folder]",
    )
    settings: Mapping[str, Any] = setting(
        {},
        "Another value: training.epochs=20 of the recipe, or one of the reduction, such as rounds=4. May be repeated.",
    )
