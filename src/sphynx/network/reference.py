"""ResNet18, VGG11 (with batch norm), wide residual networks: of any width, in torch; `space.reference` counts them."""

from __future__ import annotations

from torch import Tensor, nn

from sphynx.space.choices import Pool
from sphynx.space.reference import (
    RESNET_STAGES,
    VGG11_STAGES,
    WIDE_RESNET_STAGES,
    WIDE_RESNET_STEM,
    ResNet18Design,
    Vgg11Design,
    WideResNetDesign,
)


class ResNet18(nn.Module):
    def __init__(self, design: ResNet18Design) -> None:
        super().__init__()
        self.design = design
        width = design.width
        large = design.stem == "imagenet"
        stem: list[nn.Module] = [
            nn.Conv2d(
                design.image.channels,
                width,
                7 if large else 3,
                stride=2 if large else 1,
                padding=3 if large else 1,
                bias=False,
            ),
            nn.BatchNorm2d(width),
            nn.ReLU(),
        ]
        if large:
            stem.append(_pool(design.pool, 3, stride=2, padding=1))
        self.stem = nn.Sequential(*stem)
        blocks: list[nn.Module] = []
        channels = width
        for multiple, first_stride in RESNET_STAGES:
            for stride in (first_stride, 1):
                blocks.append(BasicBlock(channels, width * multiple, stride))
                channels = width * multiple
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(channels, design.classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(self.stem(x)).mean(dim=(2, 3)))


class BasicBlock(nn.Module):
    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Sequential(
            nn.Conv2d(channels_in, channels, 3, stride=stride, padding=1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
        )
        self.second = nn.Sequential(nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels))
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or channels_in != channels:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels_in, channels, 1, stride=stride, bias=False), nn.BatchNorm2d(channels)
            )
        self.activation = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        return self.activation(self.second(self.first(x)) + self.shortcut(x))


class Vgg11(nn.Module):
    def __init__(self, design: Vgg11Design) -> None:
        super().__init__()
        self.design = design
        layers: list[nn.Module] = []
        channels = design.image.channels
        for multiples in VGG11_STAGES:
            for multiple in multiples:
                outputs = design.width * multiple
                layers += [nn.Conv2d(channels, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()]
                channels = outputs
            layers.append(_pool(design.pool, 2, stride=2))
        if design.grid != (design.image.height // 32, design.image.width // 32):
            layers.append(nn.AdaptiveAvgPool2d(design.grid))
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(
            nn.Linear(channels * design.grid[0] * design.grid[1], design.hidden),
            nn.ReLU(),
            nn.Linear(design.hidden, design.hidden),
            nn.ReLU(),
            nn.Linear(design.hidden, design.classes),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.features(x).flatten(1))


class WideResNet(nn.Module):
    def __init__(self, design: WideResNetDesign) -> None:
        super().__init__()
        self.design = design
        self.stem = nn.Conv2d(design.image.channels, WIDE_RESNET_STEM, 3, padding=1, bias=False)
        blocks: list[nn.Module] = []
        channels = WIDE_RESNET_STEM
        for base, first_stride in WIDE_RESNET_STAGES:
            for block in range(design.blocks_per_stage):
                blocks.append(WideBlock(channels, base * design.width, 1 if block else first_stride))
                channels = base * design.width
        self.blocks = nn.Sequential(*blocks)
        self.activation = nn.Sequential(nn.BatchNorm2d(channels), nn.ReLU())
        self.head = nn.Linear(channels, design.classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):  # He's initialisation for ReLUs, as published
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.activation(self.blocks(self.stem(x))).mean(dim=(2, 3)))


class WideBlock(nn.Module):
    """BN and ReLU stand before each convolution; a shortcut that changes the shape starts behind the first ReLU."""

    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        super().__init__()
        self.activation = nn.Sequential(nn.BatchNorm2d(channels_in), nn.ReLU())
        self.convolutions = nn.Sequential(
            nn.Conv2d(channels_in, channels, 3, stride=stride, padding=1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
        )
        changes = stride != 1 or channels_in != channels
        self.shortcut = nn.Conv2d(channels_in, channels, 1, stride=stride, bias=False) if changes else None

    def forward(self, x: Tensor) -> Tensor:
        activated = self.activation(x)
        return self.convolutions(activated) + (x if self.shortcut is None else self.shortcut(activated))


def _pool(pool: Pool, kernel: int, *, stride: int, padding: int = 0) -> nn.Module:
    if pool == "max":
        return nn.MaxPool2d(kernel, stride=stride, padding=padding)
    return nn.AvgPool2d(kernel, stride=stride, padding=padding)
