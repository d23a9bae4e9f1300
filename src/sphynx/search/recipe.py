"""The settings of a cell search. The defaults are the Sphynx paper's (appendix, table of cell search).

What belongs to one strategy carries its name, and its own paper's or released code's value.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Literal, TypeVar

from sphynx.config import read_settings
from sphynx.errors import InputError
from sphynx.space.operations import ConvStack

Selection = Literal["strength", "perturbation"]
Recipe = TypeVar("Recipe")

RECIPES = ("paper", "fast", "small", "smoke")


@dataclass(frozen=True)
class SearchRecipe:
    # The supernet.
    depth: int = 8
    channels: int = 5
    nodes: int = 7
    conv_stack: ConvStack = "paper"
    # The shared weights w.
    epochs: int = 50
    batch_size: int = 64
    learning_rate: float = 0.025
    final_learning_rate: float = 0.001
    momentum: float = 0.9
    nesterov: bool = True
    weight_decay: float = 3e-4
    gradient_clip: float = 5.0
    flip: bool = True  # where a mirrored image keeps its class
    crop: bool = True
    autocast: bool = False  # bf16, on a GPU
    cuda_graphs: bool = False  # strategies that mix all operations: each step is captured once and replayed
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
    perturbation_tune_steps: int = 50

    def faults(self) -> list[str]:
        faults = []
        for name in ("depth", "channels", "epochs", "batch_size", "pc_channel_divisor", "gaea_channel_divisor",
                     "enas_hidden", "enas_derive_samples", "random_candidates", "random_finalists",
                     "hessian_window", "hessian_iterations"):  # fmt: skip
            if getattr(self, name) < 1:
                faults.append(f"{name} = {getattr(self, name)}: must be at least 1")
        for name in ("learning_rate", "gradient_clip", "architecture_learning_rate", "gdas_tau_start", "gdas_tau_end",
                     "gaea_learning_rate", "enas_learning_rate", "hessian_ratio"):  # fmt: skip
            if not getattr(self, name) > 0:
                faults.append(f"{name} = {getattr(self, name)}: must be above 0")
        if self.nodes < 4:
            faults.append(f"nodes = {self.nodes}: a cell has two inputs, an output and at least one node between")
        for name in ("warmup", "pc_warmup"):
            if not 0 <= getattr(self, name) < 1:
                faults.append(f"{name} = {getattr(self, name)}: a share of the epochs, from 0 to below 1")
        if len(self.architecture_betas) != 2:
            faults.append("architecture_betas: Adam takes two")
        return faults

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def load_recipe(name_or_path: str, overrides: Mapping[str, Any] | None = None) -> SearchRecipe:
    """A recipe by its name or from a TOML file, with flags laid over it."""
    return read_recipe(SearchRecipe, "search", name_or_path, overrides or {})


def read_recipe(kind: type[Recipe], stage: str, name_or_path: str, overrides: Mapping[str, Any]) -> Recipe:
    """Named recipes of a stage lie in recipes/STAGE-NAME.toml."""
    if name_or_path in RECIPES:
        text = resources.files("sphynx.search").joinpath("recipes", f"{stage}-{name_or_path}.toml").read_text()
    else:
        try:
            text = Path(name_or_path).read_text()
        except OSError:
            raise InputError(
                f"there is no {stage} recipe {name_or_path!r}",
                remedy=f"Use one of {', '.join(RECIPES)}, or the path of a TOML file.",
            ) from None
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"it is not valid TOML: {error}", where=name_or_path, remedy="Mend that line.") from None
    return read_settings(kind, {**table, **overrides}, where=f"{stage} recipe {name_or_path}")
