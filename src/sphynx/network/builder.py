"""A design as a torch network: stem, cells, head; in training also an auxiliary head and drop-path (DARTS's recipe)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sphynx.network.cell import Cell
from sphynx.network.operations import batch_norm
from sphynx.space.design import Design

AUXILIARY_CHANNELS = (128, 768)
# AvgPool 5 brings a map of these sizes to 2x2 with these strides; other sizes are pooled adaptively.
AUXILIARY_POOL_STRIDE = {7: 2, 8: 3, 16: 6}


class SphynxNetwork(nn.Module):
    """`forward` gives the logits; `forward_with_auxiliary` also those of the auxiliary head, for the training loss.

    `channel_multiple` rounds every width up, for hardware that wants it; `network.widen` fills such a network.
    """

    drop_path: Tensor

    def __init__(
        self, design: Design, *, auxiliary: bool = False, drop_path: bool = False, channel_multiple: int = 1
    ) -> None:
        super().__init__()
        self.design = design
        self.channel_multiple = channel_multiple
        self.stem = build_stem(design, channel_multiple)
        self.cells = nn.ModuleList()
        older = newer = round_up(design.feature_map.channels, channel_multiple)
        for position in range(design.depth):
            padded = round_up(design.cell_channels(position), channel_multiple)
            self.cells.append(Cell(design, position, older, newer, padded))
            older, newer = newer, padded
        self.head = nn.Linear(newer, design.classes)
        # The head that helps training reads the cell two thirds of the way down; it is never part of inference.
        self.auxiliary_position = 2 * design.depth // 3
        self.auxiliary = (
            AuxiliaryHead(
                round_up(design.cell_channels(self.auxiliary_position), channel_multiple),
                design.classes,
                self._auxiliary_size(),
                last_norm=design.stem != "imagenet",
            )
            if auxiliary
            else None
        )
        self.drops_paths = drop_path
        # A tensor, not a float: a captured or compiled step reads its present value.
        self.register_buffer("drop_path", torch.zeros(()), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.forward_with_auxiliary(x)[0]

    def forward_with_auxiliary(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        older, newer = self.stem(x)
        keep = self._keep(newer) if self.training and self.drops_paths else None
        auxiliary_logits = None
        for position, cell in enumerate(self.cells):
            older, newer = newer, cell(older, newer, None if keep is None else keep[position])
            if position == self.auxiliary_position and self.auxiliary is not None and self.training:
                auxiliary_logits = self.auxiliary(newer)
        return self.head(newer.mean(dim=(2, 3))), auxiliary_logits

    def _keep(self, x: Tensor) -> Tensor:
        """(cells, edges, batch, 1, 1, 1): 0 with probability `drop_path`, else its inverse survival rate.

        In fp32 beside maps of half precision too: rounded to bf16 the rate would be off by up to 0.4 %, for all alike.
        """
        edges = 2 * len(self.design.genotype.normal)
        draws = torch.rand(len(self.cells), edges, x.shape[0], 1, 1, 1, device=x.device)
        return (draws >= self.drop_path) / (1 - self.drop_path)

    def _auxiliary_size(self) -> tuple[int, int]:
        height, width = self.design.feature_map.height, self.design.feature_map.width
        for position in range(self.auxiliary_position + 1):
            if position in self.design.reduce_positions:
                height, width = (height + 1) // 2, (width + 1) // 2
        return height, width


class SmallStem(nn.Module):
    """Conv3x3-BN to 3C channels at full resolution, no ReLU: CIFAR, Tiny-ImageNet, digits."""

    def __init__(self, channels_in: int, channels: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(channels_in, channels, 3, padding=1, bias=False), batch_norm(channels, affine=True)
        )

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = self.layers(x)
        return x, x


class ImageNetStem(nn.Module):
    """Three stride-2 convolutions C/2 -> C -> C with ReLUs between; cell 0 reads the last two maps."""

    def __init__(self, channels_in: int, half: int, channels: int) -> None:
        super().__init__()

        def conv_bn(inputs: int, outputs: int) -> list[nn.Module]:
            conv = nn.Conv2d(inputs, outputs, 3, stride=2, padding=1, bias=False)
            return [conv, batch_norm(outputs, affine=True)]

        self.to_quarter = nn.Sequential(*conv_bn(channels_in, half), nn.ReLU(), *conv_bn(half, channels))
        self.to_eighth = nn.Sequential(nn.ReLU(), *conv_bn(channels, channels))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        quarter = self.to_quarter(x)
        return quarter, self.to_eighth(quarter)


class AuxiliaryHead(nn.Module):
    """`last_norm`: DARTS has batch norm behind the last convolution for small images, and none for ImageNet's."""

    def __init__(self, channels: int, classes: int, size: tuple[int, int], *, last_norm: bool) -> None:
        super().__init__()
        stride = AUXILIARY_POOL_STRIDE.get(size[0]) if size[0] == size[1] else None
        narrow, wide = AUXILIARY_CHANNELS
        self.features = nn.Sequential(
            nn.AdaptiveAvgPool2d(2) if stride is None else nn.AvgPool2d(5, stride=stride),
            nn.Conv2d(channels, narrow, 1, bias=False),
            batch_norm(narrow, affine=True),
            nn.ReLU(),
            nn.Conv2d(narrow, wide, 2, bias=False),
            *([batch_norm(wide, affine=True)] if last_norm else []),
            nn.ReLU(),
        )
        self.classifier = nn.Linear(wide, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.features(x).flatten(1))


def build_stem(design: Design, channel_multiple: int) -> nn.Module:
    channels = design.channels
    if design.stem == "imagenet":
        half, whole = (round_up(width, channel_multiple) for width in (channels // 2, channels))
        return ImageNetStem(design.image.channels, half, whole)
    return SmallStem(design.image.channels, round_up(3 * channels, channel_multiple))


def round_up(channels: int, multiple: int) -> int:
    return -(-channels // multiple) * multiple
