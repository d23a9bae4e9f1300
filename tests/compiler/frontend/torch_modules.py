"""Small torch modules, one for each operator that can be compiled, between a convolution and a dense layer."""

from collections.abc import Iterable
from copy import deepcopy

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

IMAGE = (3, 8, 6)
# Of what another case shows too, in another size or place.
SHOWN_ELSEWHERE = frozenset(
    {
        "max 2x2",
        "two max pools",
        "relu6",
        "residual",
        "grouped",
        "strides",
        "transposed",
        "bilinear",
        "bilinear to a size",
        "hard sigmoid",
        "shuffle",
        "transposed axes",
        "viewed",
    }
)


class Body(nn.Module):
    """A convolution and a ReLU, what is looked at, and a dense end."""

    def __init__(self, middle: nn.Module, *, first: bool = False) -> None:
        super().__init__()
        self.front = nn.Conv2d(3, 4, 3, padding=1)
        self.activation = nn.Identity() if first else nn.ReLU()
        self.middle = deepcopy(middle).float().eval()
        with torch.no_grad():
            size = self.middle(self.front(torch.zeros(1, *IMAGE))).numel()
        self.end = nn.Linear(size, 3)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.end(torch.flatten(self.middle(self.activation(self.front(x))), 1))
        return logits


class Call(nn.Module):
    def __init__(self, function, **modules: nn.Module) -> None:  # type: ignore[no-untyped-def]
        super().__init__()
        self.function = function
        for name, module in modules.items():
            self.add_module(name, module)

    def forward(self, x: Tensor) -> Tensor:
        return self.function(self, x)


def with_statistics(network: nn.Module) -> nn.Module:
    """Batch norms as training leaves them."""
    torch.manual_seed(0)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d | nn.BatchNorm1d):
            assert module.running_mean is not None and module.running_var is not None
            nn.init.normal_(module.running_mean)
            nn.init.uniform_(module.running_var, 0.5, 2)
    return network


def shuffle(_: nn.Module, x: Tensor) -> Tensor:
    n, c, h, w = x.shape
    return x.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w)


def halves(module: nn.Module, x: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=1)
    assert isinstance(module.conv, nn.Module)
    return torch.cat([module.conv(first), second, first[:, :, 1:, ::2].mean((2, 3), keepdim=True) + second], 1)


class DenseBlock(nn.Module):
    """DenseNet's: each layer normalises what all before it made, and its own stays unrectified."""

    def __init__(self, channels: int, growth: int, layers: int) -> None:
        super().__init__()
        widths = [channels + growth * number for number in range(layers)]
        self.layers = nn.ModuleList(
            nn.Sequential(nn.BatchNorm2d(width), nn.ReLU(), nn.Conv2d(width, growth, 3, padding=1, bias=False))
            for width in widths
        )
        self.last = nn.BatchNorm2d(widths[-1] + growth)

    def forward(self, x: Tensor) -> Tensor:
        made = [x]
        for layer in self.layers:
            made.append(layer(torch.cat(made, 1)))
        return functional.relu(self.last(torch.cat(made, 1)))


class PreActivated(nn.Module):
    """A residual stream that blocks normalise and rectify before they add to it."""

    def __init__(self, channels: int, blocks: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.BatchNorm2d(channels), nn.ReLU(), nn.Conv2d(channels, channels, 3, padding=1))
            for _ in range(blocks)
        )

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = x + block(x)
        return functional.relu(x)


CASES: dict[str, nn.Module] = {
    "max 2x2": nn.MaxPool2d(2),
    "max 3x3/2 padded": nn.MaxPool2d(3, 2, 1),
    "max rounded up": nn.MaxPool2d(3, 2, ceil_mode=True),
    "max dilated": nn.MaxPool2d((2, 3), (1, 2), dilation=(3, 1)),
    "max of all": nn.AdaptiveMaxPool2d(1),
    "two max pools": nn.Sequential(nn.MaxPool2d(2), nn.Conv2d(4, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(3, 1, 1)),
    "relu6": nn.Sequential(nn.Conv2d(4, 4, 3), nn.ReLU6()),
    "hard tanh": nn.Sequential(nn.Conv2d(4, 4, 3), nn.Hardtanh(-0.5, 0.25), nn.Conv2d(4, 2, 3, padding=1)),
    "lower bound": Call(lambda _, x: torch.clamp(x, min=0.125)),
    "upper bound": Call(lambda _, x: torch.clamp(x, max=0.5)),
    "leaky": nn.Sequential(nn.Conv2d(4, 4, 3), nn.LeakyReLU(0.1), nn.Conv2d(4, 4, 3)),
    "prelu": nn.Sequential(nn.Conv2d(4, 4, 3), nn.PReLU(4), nn.MaxPool2d(2)),
    "constants": Call(lambda _, x: (2 - (x * 3 - 1) / 4) + torch.arange(6.0, dtype=x.dtype)),
    "norm first": nn.Sequential(nn.BatchNorm2d(4), nn.ReLU(), nn.BatchNorm2d(4)),
    "norm of a vector": nn.Sequential(nn.Flatten(), nn.BatchNorm1d(192), nn.ReLU()),
    "difference": Call(lambda m, x: m.conv(x) - x, conv=nn.Conv2d(4, 4, 3, padding=1)),
    "residual": Call(lambda m, x: torch.relu(m.conv(x) + x), conv=nn.Conv2d(4, 4, 3, padding=1)),
    "depthwise": nn.Conv2d(4, 8, 3, groups=4, padding=1),
    "grouped": nn.Conv2d(4, 6, 3, groups=2, stride=2),
    "strides": nn.Conv2d(4, 3, (3, 5), stride=(1, 2), padding=(1, 2)),
    "strides 3 and 2": nn.Conv2d(4, 3, (4, 3), stride=(3, 2), padding=(2, 0), dilation=(1, 2)),
    "transposed": nn.ConvTranspose2d(4, 3, 3, stride=2, padding=1, output_padding=1),
    "transposed groups": nn.ConvTranspose2d(4, 6, (2, 3), stride=(1, 3), groups=2, dilation=(2, 1)),
    "signal": nn.Sequential(
        nn.Flatten(2),
        nn.Conv1d(4, 6, 5, 2, 2, groups=2),
        nn.BatchNorm1d(6),
        nn.ReLU(),
        nn.MaxPool1d(3, 2, 1),
        nn.Conv1d(6, 3, 3, padding=2, dilation=2),
        nn.ReLU6(),
        nn.AvgPool1d(2, ceil_mode=True),
    ),
    "signal, transposed": nn.Sequential(
        nn.Flatten(2),
        nn.ConvTranspose1d(4, 6, 3, 2, 1, 1, groups=2),
        nn.LeakyReLU(),
        nn.AdaptiveAvgPool1d(4),
        nn.Conv1d(6, 2, 1),
        nn.AdaptiveMaxPool1d(1),
    ),
    "convolved channels": Call(
        lambda m, x: x * functional.hardsigmoid(m.conv(x.mean((2, 3)).unsqueeze(1))).view(-1, 4, 1, 1),
        conv=nn.Conv1d(1, 1, 3, padding=1, bias=False),
    ),
    "convolved groups of channels": nn.Sequential(
        nn.AdaptiveAvgPool2d(1), Call(lambda _, x: x.view(-1, 2, 2).transpose(1, 2)), nn.Conv1d(2, 4, 3, 2, 2, groups=2)
    ),
    "expanded gate": Call(
        lambda m, x: functional.hardsigmoid(m.conv(x.mean((2, 3), True))).expand_as(x) * x, conv=nn.Conv2d(4, 4, 1)
    ),
    "repeated": Call(lambda _, x: x.repeat(1, 2, 1, 1) + x.mean((2, 3), True)[:, :1].expand(-1, 8, 8, 6)),
    "product of two expanded": Call(
        lambda _, x: x.mean((2, 3), True).expand_as(x) * functional.adaptive_max_pool2d(x, 1).expand_as(x) + x
    ),
    "expanded times small": Call(
        lambda _, x: x.mean((2, 3), True) * functional.adaptive_max_pool2d(x, 1).expand_as(x) + x
    ),
    "coordinates": Call(
        lambda m, x: m.conv(torch.cat([x, torch.linspace(-1, 1, 6, dtype=x.dtype).expand(len(x), 2, 8, 6)], 1)),
        conv=nn.Conv2d(6, 4, 3, padding=1),
    ),
    "a constant first": Call(
        lambda _, x: torch.cat([torch.arange(3.0, dtype=x.dtype).expand(len(x), 3), x.flatten(1)], 1)
    ),
    "nearest": nn.Upsample(scale_factor=2),
    "nearest by a fraction": nn.Upsample(scale_factor=4 / 3),
    "bilinear": nn.Upsample(scale_factor=2, mode="bilinear"),
    "bilinear to a size": nn.Upsample(size=(16, 24), mode="bilinear"),
    "bilinear by a fraction": nn.Upsample(size=(11, 7), mode="bilinear"),
    "bilinear to corners": nn.Upsample(size=(13, 4), mode="bilinear", align_corners=True),
    "hard sigmoid": nn.Hardsigmoid(),
    "hard swish": nn.Sequential(nn.Conv2d(4, 4, 3), nn.Hardswish(), nn.MaxPool2d(2)),
    "hard swish by a clip": nn.Sequential(
        Call(lambda _, x: 9 * x - 2), Call(lambda _, x: x * torch.clamp(x + 3, 0, 6) / 6)
    ),
    "hard sigmoid of a map": nn.Sequential(nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4), nn.Hardsigmoid(), nn.MaxPool2d(2)),
    "pixel shuffle": nn.Sequential(nn.PixelShuffle(2), nn.ReLU(), nn.PixelUnshuffle(2)),
    "shuffle": nn.Sequential(Call(shuffle), nn.Conv2d(4, 4, 3, groups=2)),
    "shuffle before relu": nn.Sequential(nn.Conv2d(4, 4, 3), Call(shuffle), nn.ReLU(), Call(shuffle)),
    "halves": Call(halves, conv=nn.Conv2d(2, 2, 3, padding=1)),
    "both halves of a convolution": Call(
        lambda m, x: torch.cat([m.conv(half) for half in m.front(x).split(2, 1)], 1),
        front=nn.Conv2d(4, 4, 3, padding=1),
        conv=nn.Conv2d(2, 3, 3),
    ),
    "transposed axes": Call(lambda _, x: x.permute(0, 2, 3, 1)),
    "columns before rows": Call(lambda m, x: m.conv(x.transpose(2, 3)), conv=nn.Conv2d(4, 2, 3)),
    "pads": Call(lambda m, x: m.conv(functional.pad(x, (1, 2, 0, 1))), conv=nn.Conv2d(4, 2, 3)),
    "reflected": nn.Sequential(nn.ReflectionPad2d((1, 2, 0, 1)), nn.Conv2d(4, 2, 3)),
    "replicated": nn.Sequential(nn.ReplicationPad2d(2), nn.Conv2d(4, 2, 3, stride=2)),
    "squeezed": Call(lambda _, x: x.mean((2, 3), keepdim=True).squeeze(3).squeeze(2).unsqueeze(2)),
    "rows, then columns": Call(lambda m, x: m.conv(x).mean(2).mean(-1), conv=nn.Conv2d(4, 5, 3)),
    "columns, then rows": Call(lambda _, x: x.mean(3, keepdim=True).mean(2, keepdim=True)),
    "columns alone": Call(lambda m, x: m.conv(x).mean(-1), conv=nn.Conv2d(4, 5, 3)),
    "mean of channels": Call(lambda m, x: x + m.conv(x).mean(1, keepdim=True), conv=nn.Conv2d(4, 5, 3, padding=1)),
    "sums of rows": Call(lambda m, x: x.sum(2) + m.conv(x).sum(2), conv=nn.Conv2d(4, 4, 3, padding=1)),
    "adaptive": nn.AdaptiveAvgPool2d((2, 3)),
    "padded average": nn.AvgPool2d(3, 2, 1),
    "average of zeros alone": nn.Sequential(nn.ZeroPad2d((3, 0, 0, 2)), nn.AvgPool2d(2, 1)),
    "average rounded up": nn.AvgPool2d((3, 4), (2, 4), ceil_mode=True),
    "padded average rounded up": nn.Sequential(nn.Conv2d(4, 3, 2), nn.AvgPool2d(3, (3, 2), 1, ceil_mode=True)),
    "mean behind a convolution": nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.AdaptiveAvgPool2d(1)),
    "viewed": Call(lambda _, x: x.view(x.size(0), -1, 2)),
    "viewed before a pool": nn.Sequential(
        Call(lambda _, x: x.reshape(x.size(0), 4, 6, 8)), nn.LeakyReLU(0.1), nn.MaxPool2d((3, 2))
    ),
    "slopes of viewed channels": Call(
        lambda _, x: functional.prelu(x.reshape(x.size(0), 8, 4, 6), torch.linspace(-0.5, 0.5, 8, dtype=x.dtype))
    ),
    "factors of viewed channels": Call(
        lambda _, x: x.reshape(x.size(0), 8, 4, 6) * torch.linspace(-1, 1, 8, dtype=x.dtype).view(8, 1, 1)
    ),
    "strides of viewed rows": nn.Sequential(
        Call(lambda _, x: x.transpose(2, 3)),
        nn.Conv2d(4, 4, 1, stride=(1, 2)),
        Call(lambda _, x: x.reshape(x.size(0), 4, 4, 6)),
        nn.Conv2d(4, 2, (1, 2), stride=(2, 3), padding=(1, 1)),
    ),
    "padding alone": Call(lambda _, x: functional.pad(x, (0, 0, 0, 0, 1, 0))[:, :1] * 0.5 + x[:, :1]),
    "padding alone, convolved": nn.Sequential(
        Call(lambda m, x: torch.cat([m.conv(x), x], 1).mean((2, 3), keepdim=True), conv=nn.Conv2d(4, 2, 1)),
        nn.Conv2d(6, 3, 1, stride=(3, 2), padding=(2, 1)),
        nn.ReLU(),
    ),
    "max of a smaller map": nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.MaxPool2d(3, 2, ceil_mode=True)),
    "dropped": nn.Sequential(nn.Dropout(), nn.Identity()),
}


def of_each(cases: Iterable[str]) -> pytest.MarkDecorator:
    """A test of each case, slow where another shows the same."""
    return pytest.mark.parametrize(
        "case", [pytest.param(case, marks=pytest.mark.slow) if case in SHOWN_ELSEWHERE else case for case in cases]
    )
