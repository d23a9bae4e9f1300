"""Counts what a forward pass really does, operator by operator, knowing nothing of the network's description.

A dispatch mode sees every tensor operator that torch executes, so a ReLU counts however it was written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from sphynx.space.tally import Shape, Tally

aten = torch.ops.aten


class _Observer(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's
        self.seen = Tally()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        operator = func.overloadpacket
        if operator in (aten.relu, aten.relu_, aten.clamp_min, aten.threshold):
            self.seen.relus += result.numel()
        elif operator is aten.max_pool2d_with_indices:
            kernel = args[1]
            self.seen.comparisons += result[0].numel() * (kernel[0] * kernel[-1] - 1)
        elif operator is aten.convolution:
            self.seen.macs += result.numel() * args[1][0].numel()
        elif operator in (aten.addmm, aten.mm):
            self.seen.macs += result.numel() * args[-2].shape[-1]
        elif operator is aten.avg_pool2d:
            kernel = args[1]
            self.seen.macs += result.numel() * kernel[0] * kernel[-1]
        elif operator in (aten.mean, aten._adaptive_avg_pool2d):
            self.seen.macs += args[0].numel()
        return result


def observe(network: nn.Module, image: Shape) -> Tally:
    """The counts of one image's inference, and the number of parameters outside the auxiliary head."""
    training = network.training
    network.eval()
    try:
        parameter = next(network.parameters())
        observer = _Observer()
        with torch.no_grad(), observer:
            network(torch.zeros(1, *image, device=parameter.device, dtype=parameter.dtype))
    finally:
        network.train(training)
    observer.seen.parameters = sum(
        p.numel() for name, p in network.named_parameters() if not name.startswith("auxiliary.")
    )
    return observer.seen
