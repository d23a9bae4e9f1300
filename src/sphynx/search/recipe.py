"""The settings of a cell search. The defaults are the Sphynx paper's (appendix, table of cell search).

What belongs to one strategy carries its name, and its own paper's or released code's value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from sphynx.config import Fault, Shelf
from sphynx.search.choices import SupernetForm
from sphynx.search.weight_settings import WeightSettings
from sphynx.space.choices import ConvStack
from sphynx.space.design import default_reduce_positions

Selection = Literal["strength", "perturbation"]
Ranking = Literal["softmax", "alpha"]
Epoch = Literal["last", "best"]


@dataclass(frozen=True)
class SearchRecipe(WeightSettings):
    epochs: int = 50
    # The supernet.
    depth: int = 8
    channels: int = 5
    nodes: int = 7
    conv_stack: ConvStack = "single"
    supernet: SupernetForm = "text"  # the paper's text, or its released code (see `supernet.supernet`)
    reduce_at: tuple[int, ...] = ()  # its reduce cells; empty: D/3 and 2D/3, as the paper searches
    lanes: bool | None = None  # independent parts of a captured step on CUDA streams of their own; None: as above
    # The architecture parameters (the paper's theta, DARTS's alpha): Adam.
    architecture_learning_rate: float = 3e-4
    architecture_weight_decay: float = 1e-3
    architecture_betas: tuple[float, ...] = (0.5, 0.999)
    architecture_init: float = 1e-3
    warmup: float = 0.0  # the share of epochs in which only w is trained
    # PC-DARTS (Xu et al. 2020): 1/K of the channels; w alone for 15 of 50 epochs. Also GAEA with K > 1.
    pc_channel_divisor: int = 4
    pc_warmup: float = 0.3
    # GDAS (Dong and Yang 2019).
    gdas_tau_start: float = 10.0
    gdas_tau_end: float = 0.1
    # GAEA (Li et al. 2021).
    gaea_learning_rate: float = 0.1
    gaea_channel_divisor: int = 1
    # ENAS (Pham et al. 2018), as released for micro search.
    enas_learning_rate: float = 0.0035
    enas_hidden: int = 64
    enas_baseline_decay: float = 0.99
    enas_entropy_weight: float = 1e-4
    enas_tanh_constant: float = 1.1
    enas_operation_tanh_reduce: float = 2.5
    enas_derive_samples: int = 10
    # Random search with weight sharing (Li and Talwalkar 2019).
    random_candidates: int = 1000
    random_finalists: int = 10
    # Early stopping: more skips than this in the normal cell (DARTS+); the Hessian's dominant eigenvalue, averaged over
    # `hessian_window` epochs, growing by more than 1 / hessian_ratio (Zela et al. 2020).
    max_skips: int | None = None
    hessian: bool = False
    hessian_window: int = 5
    hessian_ratio: float = 0.75
    hessian_iterations: int = 10
    # How the cell is read off at the end: strongest operations, or perturbation (Wang et al. 2021).
    selection: Selection = "strength"
    ranked_by: Ranking = "softmax"  # what DARTS's edges and operations are compared by; the released code: raw alpha
    epoch: Epoch = "last"  # whose cells are taken; the released code: those of the best held-out accuracy
    perturbation_tune_steps: int = 50

    @property
    def reduce_positions(self) -> tuple[int, ...]:
        return self.reduce_at or default_reduce_positions(self.depth)

    def faults(self) -> list[str]:
        faults = super().faults() + self.not_above_zero(
            "depth",
            "channels",
            "pc_channel_divisor",
            "gaea_channel_divisor",
            "enas_hidden",
            "enas_derive_samples",
            "random_candidates",
            "random_finalists",
            "hessian_window",
            "hessian_iterations",
            "architecture_learning_rate",
            "gdas_tau_start",
            "gdas_tau_end",
            "gaea_learning_rate",
            "enas_learning_rate",
            "hessian_ratio",
            "enas_operation_tanh_reduce",
        )
        faults += self.below_zero("architecture_weight_decay", "perturbation_tune_steps")
        faults += self.no_decay("architecture_betas", "enas_baseline_decay")
        if self.max_skips is not None:
            faults += self.below_zero("max_skips")
        if self.nodes < 4:
            between = "a cell has two inputs, an output and at least one node between"
            faults.append(Fault(f"nodes = {self.nodes}: {between}", "nodes"))
        if not all(0 <= place < self.depth for place in self.reduce_at) or any(
            after <= before for before, after in pairwise(self.reduce_at)
        ):
            faults.append(
                Fault(
                    f"reduce_at = {list(self.reduce_at)}: ascending positions from 0 to {self.depth - 1} (depth "
                    f"{self.depth}), such as {[0, 1][: max(self.depth, 1)]}; [] for D/3 and 2D/3",
                    "reduce_at",
                    "depth",
                )
            )
        for name in ("warmup", "pc_warmup"):
            if not 0 <= getattr(self, name) < 1:
                faults.append(Fault(f"{name} = {getattr(self, name)}: a share of the search, from 0 to below 1", name))
        if len(self.architecture_betas) != 2:
            faults.append(Fault("architecture_betas: Adam takes two", "architecture_betas"))
        return faults


SHELF = Shelf(SearchRecipe, "sphynx.search", "search", prefix="search-")


def load_recipe(name_or_path: str, overrides: Mapping[str, Any] | None = None) -> SearchRecipe:
    """A recipe by its name or from a TOML file, with flags laid over it."""
    return SHELF.load(name_or_path, overrides)
