"""The operations of the Sphynx space as torch modules; `space.operations` states their conventions and counts them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from sphynx.space.choices import Convolution, ConvStack
from sphynx.space.operations import convolution_steps, is_convolution


class FactorizedReduction(nn.Module):
    """Halves the resolution: two 1x1 stride-2 convolutions, the second one pixel off, side by side. Any C, any H.

    `padded` > `channels` appends channels that are always zero (see `network.widen`).
    """

    def __init__(self, channels_in: int, channels: int, *, affine: bool, padded: int | None = None) -> None:
        super().__init__()
        # A single channel has no even half.
        self.even = nn.Conv2d(channels_in, channels // 2, 1, stride=2, bias=False) if channels > 1 else None
        self.odd = nn.Conv2d(channels_in, channels - channels // 2, 1, stride=2, bias=False)
        self.padding_channels = (padded or channels) - channels
        self.norm = batch_norm(channels + self.padding_channels, affine=affine)

    def forward(self, x: Tensor) -> Tensor:
        # One zero beyond the edge, so that an odd length gives the odd half as many pixels as the even half.
        x = functional.pad(x, (0, x.shape[-1] % 2, 0, x.shape[-2] % 2))
        if self.training:
            return self.norm(self._as_one_convolution(x))
        halves = [] if self.even is None else [self.even(x)]
        y = torch.cat([*halves, self.odd(x[:, :, 1:, 1:])], dim=1)
        return self.norm(functional.pad(y, (0, 0, 0, 0, 0, self.padding_channels)))

    def _as_one_convolution(self, x: Tensor) -> Tensor:
        """The same map as a sparse 2x2 convolution: on a GPU one kernel over x instead of four."""
        corners = [] if self.even is None else [functional.pad(self.even.weight, (0, 1, 0, 1))]
        corners.append(functional.pad(self.odd.weight, (1, 0, 1, 0, 0, 0, 0, self.padding_channels)))
        return functional.conv2d(x, torch.cat(corners), stride=2)


class BatchNorm(nn.BatchNorm2d):
    """Without torch's count of batches: one kernel per layer and step, which a fixed momentum never reads."""

    def __init__(self, channels: int, *, affine: bool) -> None:
        super().__init__(channels, affine=affine)
        self.num_batches_tracked = None

    def _load_from_state_dict(self, *arguments: Any) -> None:
        # nn.BatchNorm2d's own would add the count to weights that come without torch's metadata, and then miss it.
        nn.Module._load_from_state_dict(self, *arguments)


def batch_norm(channels: int, *, affine: bool) -> nn.BatchNorm2d:
    return BatchNorm(channels, affine=affine)


def pointwise(channels_in: int, channels: int, *, affine: bool) -> nn.Sequential:
    """Linear Conv1x1-BN: how a cell takes its inputs in, and how it joins its nodes."""
    return nn.Sequential(nn.Conv2d(channels_in, channels, 1, bias=False), nn.BatchNorm2d(channels, affine=affine))


def build_operation(
    operation: str,
    channels: int,
    *,
    stride: int,
    conv_stack: ConvStack,
    convolution: Convolution = "vanilla",
    inner_relus: bool = False,
    affine: bool = True,
    padded: int | None = None,
) -> nn.Module:
    """One edge's operation, built `padded` wide where that is given.

    `affine` is off in supernets, where a scale would compete with the edge's weight.
    """
    real, channels = channels, padded or channels
    if is_convolution(operation):
        layers: list[nn.Module] = []
        for step in convolution_steps(operation, stride, conv_stack):
            if inner_relus:
                layers.append(nn.ReLU())
            layers.append(
                nn.Conv2d(
                    channels,
                    channels,
                    step.kernel,
                    stride=step.stride,
                    padding=step.padding,
                    dilation=step.dilation,
                    groups=channels if convolution == "separable" else 1,
                    bias=False,
                )
            )
            if convolution == "separable":
                layers.append(nn.Conv2d(channels, channels, 1, bias=False))
            layers.append(batch_norm(channels, affine=affine))
        return nn.Sequential(*layers)
    if operation == "avg_pool":
        return nn.Sequential(
            nn.AvgPool2d(3, stride=stride, padding=1, count_include_pad=False),
            batch_norm(channels, affine=affine),
        )
    if operation == "skip":
        return nn.Identity() if stride == 1 else FactorizedReduction(channels, real, affine=affine, padded=channels)
    raise ValueError(f"not an operation of the Sphynx space: {operation}")
