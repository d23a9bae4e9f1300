"""The linear operations of the Sphynx space, counted. `network.operations` builds the same ones in torch.

Conventions (Sphynx paper, section 4.1 and appendix; where the paper is silent, its authors' released code):
- conv3 / conv5: Conv-BN twice, the second at stride 1. `conv_stack` chooses the form of the stack:
  "paper" pads both; "single" is one Conv-BN; "pad_once" pads the first by enough for both and leaves the second
  unpadded, so that the stack is exactly one wider convolution (it fuses under private inference).
- dil3 / dil5: one Conv-BN with dilation 2. avg_pool: 3x3, border windows averaged over what they cover, then BN.
- skip: nothing at stride 1, a factorized reduction at stride 2.
- separable: each convolution becomes depthwise, then 1x1.
- inner_relus puts a ReLU in front of each convolution: the paper's teacher network, not meant for private inference.
"""

from __future__ import annotations

from dataclasses import dataclass

from sphynx.space.choices import Convolution, ConvStack
from sphynx.space.tally import Shape, Tally


@dataclass(frozen=True)
class SpatialStep:
    """One Conv-BN of an operation."""

    kernel: int
    stride: int
    padding: int
    dilation: int


def convolution_steps(operation: str, stride: int, conv_stack: ConvStack) -> tuple[SpatialStep, ...]:
    """The Conv-BN steps of conv3, conv5, dil3 or dil5."""
    kernel = int(operation[-1])
    half = kernel // 2
    if operation.startswith("dil"):
        return (SpatialStep(kernel, stride, 2 * half, 2),)
    if conv_stack == "single":
        return (SpatialStep(kernel, stride, half, 1),)
    if conv_stack == "pad_once":
        # The second convolution eats `half` positions per side of the strided map: half * stride before the stride.
        return (SpatialStep(kernel, stride, half * (1 + stride), 1), SpatialStep(kernel, 1, 0, 1))
    return (SpatialStep(kernel, stride, half, 1), SpatialStep(kernel, 1, half, 1))


def is_convolution(operation: str) -> bool:
    return operation.startswith(("conv", "dil"))


def tally_operation(
    tally: Tally,
    operation: str,
    x: Shape,
    *,
    stride: int,
    conv_stack: ConvStack,
    convolution: Convolution,
    inner_relus: bool,
) -> Shape:
    """Adds one edge's operation on a map with as many channels going out as coming in."""
    if is_convolution(operation):
        for step in convolution_steps(operation, stride, conv_stack):
            if inner_relus:
                tally.relu(x)
            groups = x.channels if convolution == "separable" else 1
            x = tally.convolution(
                x,
                x.channels,
                step.kernel,
                stride=step.stride,
                padding=step.padding,
                dilation=step.dilation,
                groups=groups,
            )
            if convolution == "separable":
                x = tally.convolution(x, x.channels, 1)
            x = tally.batch_norm(x)
        return x
    if operation == "avg_pool":
        return tally.batch_norm(tally.average_pool(x, 3, stride=stride, padding=1))
    if operation == "skip":
        return x if stride == 1 else tally.factorized_reduction(x, x.channels, affine=True)
    raise ValueError(f"not an operation of the Sphynx space: {operation}")
