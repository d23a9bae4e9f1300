"""The order in memory of a network's kernels: channels last, which tensor cores want, or first."""

import torch
from torch import nn


def lay_out(network: nn.Module, memory_format: torch.memory_format) -> None:
    """Lay out the kernels. `Module.to` would refuse the supernet's stacked reductions, which are 5-dimensional."""
    for parameter in network.parameters():
        if parameter.ndim == 4:
            parameter.data = parameter.data.contiguous(memory_format=memory_format)
