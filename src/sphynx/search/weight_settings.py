"""How both searches train network weights w: SGD with momentum, clipped, its rate a cosine over the epochs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Self

import torch
from torch import Tensor, nn

from sphynx.config import Fault

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
        on_gpu = torch.device(device).type == "cuda"
        left_open = [f.name for f in fields(self) if f.name in BY_DEVICE and getattr(self, f.name) is None]
        return replace(self, **dict.fromkeys(left_open, on_gpu))

    def faults(self) -> list[str]:
        return self.not_above_zero("epochs", "batch_size", "learning_rate", "gradient_clip")

    def not_above_zero(self, *names: str) -> list[str]:
        return [
            Fault(f"{name} = {getattr(self, name)}: must be above 0", name)
            for name in names
            if not getattr(self, name) > 0
        ]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def channel_multiple(self) -> int:
        return TENSOR_CORE_WIDTH if self.tensor_cores else 1

    @property
    def memory_format(self) -> torch.memory_format:
        return torch.channels_last if self.tensor_cores else torch.contiguous_format

    def rate(self, epoch: int) -> float:
        low, high = self.final_learning_rate, self.learning_rate
        return low + (high - low) * (1 + math.cos(math.pi * epoch / self.epochs)) / 2

    def optimiser(self, weights: Iterable[nn.Parameter], rate: Tensor) -> torch.optim.SGD:
        """`rate` is a tensor on the weights' device, so that a captured step reads its present value."""
        optimiser = torch.optim.SGD(
            weights,
            lr=rate,
            momentum=self.momentum,
            nesterov=self.nesterov,
            weight_decay=self.weight_decay,
            fused=rate.device.type == "cuda",
        )
        if self.momentum:
            # A sampled path trains some weights later than others, and the fused kernel wants either all momenta or
            # none. Starting from zero is what the first step would do anyway.
            for weight in optimiser.param_groups[0]["params"]:
                optimiser.state[weight]["momentum_buffer"] = torch.zeros_like(weight)
        return optimiser


def give_gradients(weights: Sequence[Tensor], gradients: Iterable[Tensor | None]) -> None:
    """Each gradient in its weight's own layout, which the fused kernel asks for: that of a slice comes contiguous."""
    for weight, gradient in zip(weights, gradients, strict=True):
        if gradient is not None and gradient.stride() != weight.stride():
            gradient = torch.empty_like(weight).copy_(gradient)
        weight.grad = gradient


def lay_out(network: nn.Module, memory_format: torch.memory_format) -> None:
    """Kernels in this layout. `Module.to` would refuse the supernet's stacked reductions, which are 5-dimensional."""
    for parameter in network.parameters():
        if parameter.ndim == 4:
            parameter.data = parameter.data.contiguous(memory_format=memory_format)
