"""All candidate operations on all edges that leave one node of a supernet cell.

Convolutions with equal kernels that leave one node for T targets run as one convolution with T times the channels
(a second convolution as a grouped one); batch norm here has no scale and works channel by channel, so this is exactly
what T separate operations of `network.operations` would give. Average pooling is the same for all targets: once.
An operation's share in the mixture is that scale of batch norm, so that neither it nor its gradient takes a pass of
its own over the maps.

Batch norm always uses the statistics of the batch: an operation's input distribution changes with the mixture, so
running averages would describe none of them.

Partial channels (PC-DARTS, Xu et al. 2020): only 1/K of the channels pass through the operations, the rest goes
around them, and a shuffle lets the next edges see other channels. Around a stride of 2 the rest is average pooled
(the original takes the maximum, which the Sphynx space leaves out).
"""

from __future__ import annotations

import math
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from sphynx.search.supernet.cellspace import ZERO
from sphynx.search.supernet.lanes import start
from sphynx.space.choices import ConvStack
from sphynx.space.operations import convolution_steps, is_convolution


def normalise(x: Tensor, scale: Tensor | None = None) -> Tensor:
    return functional.batch_norm(x, None, None, scale, training=True)


class StackedConvolution(nn.Module):
    def __init__(self, operation: str, channels: int, targets: int, *, stride: int, conv_stack: ConvStack) -> None:
        super().__init__()
        self.channels, self.targets = channels, targets
        self.steps = convolution_steps(operation, stride, conv_stack)
        self.weights = nn.ParameterList(
            _initial(targets * channels, channels, step.kernel, step.kernel) for step in self.steps
        )

    def forward(self, x: Tensor, target: int | None = None, scale: Tensor | None = None) -> Tensor:
        """(B, T*C, H, W) for all targets, or (B, C, H, W) for one; channel by channel times `scale`."""
        for number, (step, weight) in enumerate(zip(self.steps, self.weights, strict=True)):
            groups = 1 if number == 0 or target is not None else self.targets
            if target is not None:
                weight = weight[target * self.channels : (target + 1) * self.channels]
            x = functional.conv2d(x, weight, None, step.stride, step.padding, step.dilation, groups)
            x = normalise(x, scale if number + 1 == len(self.steps) else None)
        return x


class StackedReduction(nn.Module):
    """The skip at stride 2: factorized reductions of all targets, the even and the odd halves stacked each.

    Of `padded` channels the first `channels` are given out, and zeros for the others.
    """

    def __init__(self, channels: int, targets: int, padded: int) -> None:
        super().__init__()
        self.targets, self.zeros = targets, padded - channels
        self.even = _initial(targets, channels // 2, padded, 1, 1)
        self.odd = _initial(targets, channels - channels // 2, padded, 1, 1)

    def forward(self, x: Tensor, target: int | None = None, scale: Tensor | None = None) -> Tensor:
        shifted = functional.pad(x, (0, x.shape[-1] % 2, 0, x.shape[-2] % 2))[:, :, 1:, 1:]
        which = slice(None) if target is None else slice(target, target + 1)
        halves = [
            _by_target(functional.conv2d(half, weight[which].flatten(0, 1), stride=2), weight.shape[1])
            for half, weight in ((x, self.even), (shifted, self.odd))
            if weight.shape[1] > 0
        ]
        whole = torch.cat(halves, dim=2)
        if self.zeros:
            whole = functional.pad(whole, (0, 0, 0, 0, 0, self.zeros))
        return normalise(whole.flatten(1, 2), scale)


class Fan(nn.Module):
    """`padded` is the width it is built with, at least `channels` (see `wide_supernet`); partial channels have none."""

    shuffle: Tensor

    def __init__(
        self,
        candidates: tuple[str, ...],
        channels: int,
        targets: int,
        *,
        stride: int,
        conv_stack: ConvStack,
        channel_divisor: int = 1,
        padded: int | None = None,
    ) -> None:
        super().__init__()
        self.candidates, self.targets, self.stride = candidates, targets, stride
        real, channels = max(1, channels // channel_divisor), padded or channels
        self.part = max(1, channels // channel_divisor)
        self.partial = self.part < channels
        self.modules_by_operation = nn.ModuleDict()
        for operation in candidates:
            if is_convolution(operation):
                self.modules_by_operation[operation] = StackedConvolution(
                    operation, self.part, targets, stride=stride, conv_stack=conv_stack
                )
            elif operation == "skip" and stride == 2:
                self.modules_by_operation[operation] = StackedReduction(real, targets, self.part)
        self.register_buffer("shuffle", _shuffle(channels, channel_divisor), persistent=False)

    def mix(self, x: Tensor, weights: Tensor, edges: Tensor | None) -> Tensor:
        """Add up what reaches each target, (B, T, C, H, W): all operations, weighted by (T, operations + zero)."""
        part = x[:, : self.part] if self.partial else x
        weighted = [
            start(partial(self._weigh, operation), part, weights[:, column])
            for column, operation in enumerate(self.candidates)
            if operation != ZERO
        ]
        total = weighted[0].join()
        for one in weighted[1:]:
            total = total + one.join()
        if self.partial:
            rest = self._around(x[:, self.part :]).unsqueeze(1).expand(-1, self.targets, -1, -1, -1)
            total = torch.cat([total, rest.to(total.dtype)], dim=2).index_select(2, self.shuffle)
        if edges is not None:
            total = total * edges.to(total.dtype).view(-1, 1, 1, 1)
        return total

    def _weigh(self, operation: str, x: Tensor, weights: Tensor) -> Tensor:
        if operation in self.modules_by_operation:
            scale = weights.repeat_interleave(self.part)
            return _by_target(self.modules_by_operation[operation](x, None, scale), self.part)
        y = _by_target(self._operate(operation, x), self.part)
        return y * weights.to(y.dtype).view(-1, 1, 1, 1)

    def one(self, x: Tensor, column: int, target: int) -> Tensor:
        """One operation on one edge; (B, C, H, W)."""
        part, operation = x[:, : self.part] if self.partial else x, self.candidates[column]
        if operation in self.modules_by_operation:
            y: Tensor = self.modules_by_operation[operation](part, target)
        else:
            y = self._operate(operation, part)
        if self.partial:
            y = torch.cat([y, self._around(x[:, self.part :]).to(y.dtype)], dim=1).index_select(1, self.shuffle)
        return y

    def _operate(self, operation: str, x: Tensor) -> Tensor:
        """Apply an operation that has no weights and is the same for all targets; (B, C, H, W)."""
        if operation == "skip":
            return x
        if operation == "avg_pool":
            return normalise(functional.avg_pool2d(x, 3, self.stride, padding=1, count_include_pad=False))
        raise ValueError(f"not an operation of the Sphynx space: {operation}")

    def _around(self, x: Tensor) -> Tensor:
        if self.stride == 1:
            return x
        return functional.avg_pool2d(x, 2, 2, ceil_mode=True, count_include_pad=False)


def _by_target(x: Tensor, channels: int) -> Tensor:
    """(B, T*C, H, W) as (B, T, C, H, W)."""
    return x.view(x.shape[0], -1, channels, *x.shape[2:])


def _initial(*shape: int) -> nn.Parameter:
    """Torch's default for convolutions: uniform within 1 / sqrt(fan_in)."""
    bound = 1 / math.sqrt(math.prod(shape[-3:]))
    return nn.Parameter(torch.empty(shape).uniform_(-bound, bound))


def _shuffle(channels: int, groups: int) -> Tensor:
    """ShuffleNet's channel shuffle with `groups` groups, for any number of channels."""
    width = math.ceil(channels / groups)
    order = torch.arange(width * groups).view(groups, width).t().flatten()
    return order[order < channels]
