"""The settings of a placement search; `algorithm` says what `estimator` and tau do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sphynx.config import Fault, Shelf
from sphynx.search.choices import Estimator, Rivals
from sphynx.search.weight_settings import WeightSettings

METHODS: dict[Estimator, str] = {
    "paper": "Algorithm 1",
    "released": "Algorithm 1 as released",
    "losses": "Algorithm 1 by running losses",
}


def name_method(estimator: Estimator, rivals: Rivals) -> str:
    return METHODS[estimator] + (", rivals by probability" if rivals == "likely" else "")


@dataclass(frozen=True)
class PlacementRecipe(WeightSettings):
    """The defaults are the paper's (appendix, table of placement search)."""

    epochs: int = 600
    tau_start: float = 1000.0
    tau_end: float = 0.1
    tau_by: Literal["step", "epoch"] = "step"  # when tau changes
    beta_learning_rate: float = 3e-4  # for a schedule as long as the paper's
    beta_rate_limit: float = 0.03
    beta_weight_decay: float = 1e-3
    beta_betas: tuple[float, ...] = (0.5, 0.999)
    beta_init: float = 1e-3
    rate_warmup: float = 0.0  # share of the steps in which the weights' rate rises from 0 to what the epoch has
    beta_warmup: float = 0.0  # share of the steps before beta learns: all candidates train alike until then
    estimator: Estimator = "paper"  # of beta's gradient
    rivals: Rivals = "uniform"  # of the released form: how the others that it compares with are drawn

    def faults(self) -> list[str]:
        faults = super().faults() + self.not_above_zero("tau_start", "tau_end", "beta_learning_rate", "beta_rate_limit")
        faults += self.below_zero("beta_weight_decay") + self.no_decay("beta_betas")
        faults += [
            Fault(f"{name} = {share}: must be at least 0 and below 1", name)
            for name, share in (("rate_warmup", self.rate_warmup), ("beta_warmup", self.beta_warmup))
            if not 0 <= share < 1
        ]
        if self.rivals != "uniform" and self.estimator != "released":
            faults.append(Fault(f"rivals = {self.rivals}: only estimator = released compares candidates", "rivals"))
        if len(self.beta_betas) != 2:
            faults.append(Fault("beta_betas: Adam takes two", "beta_betas"))
        return faults

    def warmed(self, epoch: int, done: int, steps: int) -> float:
        """The weights' rate in the step after `done` of `steps`."""
        rise = self.rate_warmup * steps
        return self.rate(epoch) * min(1.0, (done + 1) / rise if rise else 1.0)

    @property
    def method(self) -> str:
        """The method's name beside results: only the paper's gradient is the paper's algorithm."""
        return name_method(self.estimator, self.rivals)


PLACEMENT_SHELF = Shelf(PlacementRecipe, "sphynx.search", "placement", prefix="placement-")


def load_placement_recipe(name_or_path: str, overrides: Mapping[str, Any] | None = None) -> PlacementRecipe:
    return PLACEMENT_SHELF.load(name_or_path, overrides)
