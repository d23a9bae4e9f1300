"""Random layers for a map of a given shape, of every kind that can be compiled; None where a kind does not fit it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import Literal

import torch
from torch import nn
from torch.nn import functional

from sphynx.space.tally import Shape
from tests.compiler.frontend.torch_modules import Call, shuffle

Layer = Callable[[Random, Shape], nn.Module | None]
Pair = tuple[int, int]

SMOOTH = (nn.Sigmoid, nn.Tanh, nn.SiLU, nn.GELU, nn.ELU, nn.Softplus)  # compiled with leave to approximate them


def pair(numbers: Iterable[int]) -> Pair:
    rows, columns = numbers
    return rows, columns


def rarely(random: Random, chance: float = 0.1) -> bool:
    return random.random() < chance


def window(random: Random, length: int, padding: int, longest: int = 4) -> Pair:
    """A kernel and a dilation that fit an axis of this length, padded on both sides."""
    most = length + 2 * padding
    kernel = random.randint(1, min(longest, most))
    dilations = [d for d in (1, 1, 1, 2, 3) if d * (kernel - 1) < most]
    return kernel, random.choice(dilations)


def stride(random: Random) -> int:
    return random.choice((1, 1, 1, 2, 2, 3))


def paddings(random: Random, shape: Shape) -> Pair:
    """Draw one value for rows and one for columns; an axis of one position is mostly left alone."""
    return pair(random.choice((0, 0, 1, 2) if length > 1 else (0, 0, 0, 1)) for length in shape[1:])


def convolution(random: Random, shape: Shape) -> nn.Module:
    padding = paddings(random, shape)
    (rows, down), (columns, across) = (window(random, *axis) for axis in zip(shape[1:], padding, strict=True))
    groups = random.choice([n for n in (1, 1, 2, shape.channels) if shape.channels % n == 0])
    outputs = groups * random.randint(1, max(1, 6 // groups))
    mode: Literal["zeros", "reflect", "replicate", "circular"] = "zeros"
    if rarely(random) and all(pad < length for pad, length in zip(padding, shape[1:], strict=True)):
        mode = random.choice(("reflect", "replicate", "circular"))
    strides, bias = (stride(random), stride(random)), not rarely(random, 0.3)
    return nn.Conv2d(
        shape.channels, outputs, (rows, columns), strides, padding, (down, across), groups, bias, padding_mode=mode
    )


def same_convolution(random: Random, shape: Shape) -> nn.Module:
    kernel = (random.randint(1, 3), random.randint(1, 3))
    return nn.Conv2d(shape.channels, random.randint(1, 6), kernel, padding="same", dilation=random.choice((1, 1, 2)))


def transposed(random: Random, shape: Shape) -> nn.Module:
    kernel, strides = ((random.randint(1, 3), random.randint(1, 3)) for _ in range(2))
    padding = pair(random.randint(0, min(1, k - 1)) if n > 1 else 0 for k, n in zip(kernel, shape[1:], strict=True))
    dilation = random.choice((1, 1, 1, 2))
    extra = pair(random.randint(0, max(s, dilation) - 1) if rarely(random, 0.3) else 0 for s in strides)
    groups = random.choice([n for n in (1, 1, 2, shape.channels) if shape.channels % n == 0])
    outputs = groups * random.randint(1, max(1, 4 // groups))
    return nn.ConvTranspose2d(
        shape.channels, outputs, kernel, strides, padding, extra, groups, not rarely(random, 0.3), dilation
    )


def over_one_axis(random: Random, shape: Shape) -> nn.Module | None:
    """Lay out a map of one row or column as networks of signals see it."""
    if 1 not in shape[1:]:
        return None
    axis, length = (2, shape.width) if shape.height == 1 else (3, shape.height)
    padding = random.randint(0, 2)
    kernel, dilation = window(random, length, padding)
    layer: nn.Module = nn.Conv1d(shape.channels, random.randint(1, 6), kernel, stride(random), padding, dilation)
    if rarely(random, 0.4):
        kernel = random.randint(1, min(4, length))
        pooled = (nn.MaxPool1d, nn.AvgPool1d)[random.randint(0, 1)]
        layer = pooled(kernel, random.randint(1, 3), random.randint(0, kernel // 2), ceil_mode=rarely(random, 0.3))
    elif rarely(random, 0.2):
        layer = nn.BatchNorm1d(shape.channels)
    return Call(lambda m, x: m.layer(x.squeeze(axis)).unsqueeze(axis), layer=layer)


def pad(random: Random, shape: Shape) -> nn.Module:
    """A layer of its own, often along one axis only; zeros, the map's own pixels, or less of the map."""
    amounts = [random.choice((0, 0, 1, 1, 2, 3)) for _ in range(4)]  # left, right, top, bottom
    if rarely(random, 0.5):
        first = 2 * random.randint(0, 1)
        amounts[first : first + 2] = 0, 0
    left_right, top_bottom = amounts[:2], amounts[2:]
    around = (amounts[0], amounts[1], amounts[2], amounts[3])
    narrow = max(left_right) >= shape.width or max(top_bottom) >= shape.height
    if rarely(random, 0.5) or narrow:
        return nn.ZeroPad2d(around)
    if rarely(random, 0.2):
        amounts[random.choice((0, 2))] = -1
        return Call(lambda _, x: functional.pad(x, amounts))
    kinds = (nn.ReflectionPad2d, nn.ReplicationPad2d, nn.CircularPad2d)
    return random.choice(kinds)(around)


def pool(random: Random, shape: Shape) -> nn.Module:
    kernel = pair(random.randint(1, min(3, n)) for n in shape[1:])
    padding = pair(random.randint(0, k // 2) for k in kernel)
    strides, ceil_mode = (random.randint(1, 3), random.randint(1, 3)), rarely(random, 0.3)
    if rarely(random, 0.5):
        return nn.MaxPool2d(kernel, strides, padding, ceil_mode=ceil_mode)
    return nn.AvgPool2d(kernel, strides, padding, ceil_mode, count_include_pad=rarely(random, 0.5))


def adaptive_pool(random: Random, shape: Shape) -> nn.Module:
    size = pair(random.choice([n for n in range(1, length + 1) if length % n == 0]) for length in shape[1:])
    if rarely(random, 0.3):
        return nn.AdaptiveMaxPool2d(size)
    return nn.AdaptiveAvgPool2d(size if rarely(random, 0.8) else random.randint(1, 3))


def activation(random: Random, shape: Shape) -> nn.Module:
    kinds: tuple[Callable[[], nn.Module], ...] = (
        nn.ReLU,
        nn.ReLU,
        nn.ReLU,
        nn.ReLU6,
        lambda: nn.LeakyReLU(random.choice((0.01, 0.1, 0.3))),
        lambda: nn.PReLU(shape.channels),
        lambda: nn.Hardtanh(-0.5, 0.75),
        nn.Hardsigmoid,
        nn.Hardswish,
    )
    return random.choice(kinds)()


def smooth(random: Random, _: Shape) -> nn.Module:
    return random.choice(SMOOTH)()


def resize(random: Random, shape: Shape) -> nn.Module | None:
    if max(shape) > 16:
        return None
    if rarely(random, 0.5):
        return nn.Upsample(scale_factor=(random.randint(1, 2), random.randint(1, 3)), mode="nearest")
    return nn.Upsample(scale_factor=2, mode="bilinear", align_corners=rarely(random, 0.3))


def move(random: Random, shape: Shape) -> nn.Module:
    channels, height, width = shape
    step, first = random.randint(1, 2), random.randint(0, min(2, height - 1))
    moves: list[nn.Module] = [
        Call(lambda _, x: x.transpose(2, 3)),
        Call(lambda _, x: x.flip(2 if height > 1 else 3)),
        Call(lambda _, x: x[:, :, first:, ::step]),
        Call(lambda _, x: torch.roll(x, 1, 3)),
        Call(lambda _, x: x.reshape(1, -1, 1, width)),
        Call(lambda _, x: x.repeat(1, 1, 2, 1)),
    ]
    if channels % 2 == 0:
        moves += [Call(shuffle), Call(lambda _, x: torch.cat(x.chunk(2, 1)[::-1], 1))]
        moves.append(Call(lambda _, x: x.reshape(1, channels // 2, 2 * height, width)))
    if channels % 4 == 0:
        moves.append(nn.PixelShuffle(2))
    if height % 2 == 0 and width % 2 == 0:
        moves.append(nn.PixelUnshuffle(2))
    return random.choice(moves)


def reduction(random: Random, shape: Shape) -> nn.Module:
    axis = random.choice([number for number in (1, 2, 3) if max(shape) == 1 or shape[number - 1] > 1])
    if rarely(random, 0.5) or max(shape) == 1:
        return Call(lambda _, x: x.mean(axis, keepdim=True))
    return Call(lambda _, x: x - x.mean(axis, keepdim=True))


def constant(random: Random, shape: Shape) -> nn.Module:
    if rarely(random, 0.7):
        return nn.BatchNorm2d(shape.channels, affine=rarely(random, 0.7))
    across = torch.linspace(-1, 1, shape.width)
    places = across.expand(1, 1, *shape[1:]).contiguous()
    return random.choice(
        (
            Call(lambda _, x: 1.5 - (x * 3 - 1) / 4),
            Call(lambda _, x: x + across),
            Call(lambda _, x: torch.cat([x, places], 1)),  # as a CoordConv does
        )
    )


def join(random: Random, shape: Shape) -> nn.Module:
    """Branches beside the map: added, subtracted, joined, joined with a pool, or a gate for each channel."""
    kernel = pair(random.choice((1, 3)) if n > 1 else 1 for n in shape[1:])
    around = pair(k // 2 for k in kernel)
    groups = random.choice((1, 1, shape.channels))
    branch = nn.Conv2d(shape.channels, shape.channels, kernel, padding=around, groups=groups)
    other = nn.Conv2d(shape.channels, random.randint(1, 3), 1)
    gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(shape.channels, shape.channels, 1), nn.Hardsigmoid())
    pooled = nn.AvgPool2d(kernel, 1, around)
    return random.choice(
        (
            Call(lambda m, x: m.branch(x) + x, branch=branch),
            Call(lambda m, x: torch.relu(m.branch(x)) + x, branch=branch),
            Call(lambda m, x: x - torch.relu(m.branch(x)), branch=branch),
            Call(lambda m, x: torch.cat([m.branch(x), x], 1), branch=branch),
            Call(lambda m, x: torch.cat([m.other(x), torch.relu(x), m.pooled(x)], 1), other=other, pooled=pooled),
            Call(lambda m, x: torch.cat([x, torch.relu(m.branch(x))], 2), branch=branch),
            Call(lambda m, x: x * m.gate(x), gate=gate),
        )
    )


# Each kind as often as it is listed here.
LAYERS: tuple[Layer, ...] = (
    *(convolution,) * 6, same_convolution, *(transposed,) * 2, *(over_one_axis,) * 3, *(pad,) * 5, *(pool,) * 3,
    adaptive_pool, *(activation,) * 7, smooth, resize, *(move,) * 2, reduction, *(constant,) * 2, *(join,) * 4,
)  # fmt: skip
