"""How both searches train network weights w: SGD with momentum, clipped, its rate a cosine over the epochs."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Self

from sphynx.config import Fault

if TYPE_CHECKING:
    import torch

TENSOR_CORE_WIDTH = 8
BY_DEVICE = ("autocast", "cuda_graphs", "tensor_cores", "lanes")


@dataclass(frozen=True)
class WeightSettings:
    """The paper's values (appendix, tables of cell search and of placement search), which differ in the epochs only."""

    epochs: int
    batch_size: int = 64
    learning_rate: float = 0.025
    final_learning_rate: float = 0.001
    momentum: float = 0.9
    nesterov: bool = True
    weight_decay: float = 3e-4
    gradient_clip: float = 5.0
    flip: bool = True  # where a mirrored image keeps its class
    crop: bool = True
    # How it runs: what is not said (None) is decided by the device, on for a GPU and off elsewhere (`resolved`).
    autocast: bool | None = None  # bf16, on a GPU
    cuda_graphs: bool | None = None  # a step is captured once and replayed, one graph per choice that it makes
    tensor_cores: bool | None = None  # channels last in memory, widths that are multiples of 8

    def resolved(self, device: torch.device | str) -> Self:
        """The same with nothing left open. All but bf16 change how fast it is, not what it computes."""
        on_gpu = str(device).partition(":")[0] == "cuda"
        left_open = [f.name for f in fields(self) if f.name in BY_DEVICE and getattr(self, f.name) is None]
        return replace(self, **dict.fromkeys(left_open, on_gpu))

    def faults(self) -> list[str]:
        faults = self.not_above_zero("epochs", "learning_rate", "gradient_clip")
        if self.batch_size < 2:
            faults.append(Fault(f"batch_size = {self.batch_size}: batch norm needs at least 2", "batch_size"))
        faults += self.below_zero("weight_decay", "final_learning_rate") + self.no_decay("momentum")
        if self.nesterov and self.momentum == 0:
            faults.append(Fault("Nesterov's momentum needs momentum above 0", "momentum", "nesterov"))
        return faults

    def not_above_zero(self, *names: str) -> list[str]:
        return [
            Fault(f"{name} = {getattr(self, name)}: must be above 0", name)
            for name in names
            if not getattr(self, name) > 0
        ]

    def below_zero(self, *names: str) -> list[str]:
        return [
            Fault(f"{name} = {getattr(self, name)}: must be at least 0", name)
            for name in names
            if not getattr(self, name) >= 0
        ]

    def no_decay(self, *names: str) -> list[str]:
        """List faults of decay rates: of moving averages, and of Adam's two."""
        faults: list[str] = []
        for name in names:
            value = getattr(self, name)
            decays = value if isinstance(value, tuple) else (value,)
            if not all(0 <= decay < 1 for decay in decays):
                shown = list(value) if isinstance(value, tuple) else value
                faults.append(Fault(f"{name} = {shown}: must be at least 0 and below 1", name))
        return faults

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def channel_multiple(self) -> int:
        return TENSOR_CORE_WIDTH if self.tensor_cores else 1

    def rate(self, epoch: int) -> float:
        low, high = self.final_learning_rate, self.learning_rate
        return low + (high - low) * (1 + math.cos(math.pi * epoch / self.epochs)) / 2
