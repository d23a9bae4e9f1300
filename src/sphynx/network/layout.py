"""The order in memory of a network's kernels: channels last, which tensor cores want, or first.

Masks [channels, rows, columns] of reduced networks follow: read across the order of the maps they are slow.
"""

import torch
from torch import nn


def lay_out(network: nn.Module, memory_format: torch.memory_format) -> None:
    """Lay out the kernels. `Module.to` would refuse the supernet's stacked reductions, which are 5-dimensional."""
    for parameter in network.parameters():
        if parameter.ndim == 4:
            parameter.data = parameter.data.contiguous(memory_format=memory_format)
    for mask in (*network.parameters(), *network.buffers()):
        if mask.ndim == 3:
            mask.data = mask.data[None].contiguous(memory_format=memory_format)[0]
