"""The original micro-search network (DARTS) in torch; `space.micro` describes and counts it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sphynx.network.operations import FactorizedReduction
from sphynx.space.cell import INPUT_NODES
from sphynx.space.micro import MicroDesign, reads_through_relu


class MicroNetwork(nn.Module):
    def __init__(self, design: MicroDesign) -> None:
        super().__init__()
        self.design = design
        stem_channels = 3 * design.channels
        self.stem = nn.Sequential(
            nn.Conv2d(design.image.channels, stem_channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(stem_channels),
        )
        self.cells = nn.ModuleList()
        older = newer = stem_channels
        for position in range(design.depth):
            self.cells.append(MicroCell(design, position, older, newer))
            older, newer = newer, design.cell_channels(position) * len(design.genotype.normal)
        self.head = nn.Linear(newer, design.classes)

    def forward(self, x: Tensor) -> Tensor:
        older = newer = self.stem(x)
        for cell in self.cells:
            older, newer = newer, cell(older, newer)
        return self.head(newer.mean(dim=(2, 3)))


class MicroCell(nn.Module):
    def __init__(self, design: MicroDesign, position: int, channels_older: int, channels_newer: int) -> None:
        super().__init__()
        channels = design.cell_channels(position)
        reducing = position in design.reduce_positions
        nodes = design.genotype.reduce if reducing else design.genotype.normal
        edges = [edge for pair in nodes for edge in pair]
        strides = [2 if reducing and edge.source < INPUT_NODES else 1 for edge in edges]
        reduction = design.older_input_is_larger(position)
        self.input_older = _input(
            channels_older, channels, relu=design.older_input_has_relu(position), reduction=reduction
        )
        self.input_newer = _input(channels_newer, channels, relu=design.preprocessing_relus == "all", reduction=False)
        self.sources = [edge.source for edge in edges]
        self.behind_relu = [reads_through_relu(*pair) for pair in zip(edges, strides, strict=True)]
        self.share_relus = design.share_relus
        self.edges = nn.ModuleList(
            _after_relu(edge.operation, channels, stride) for edge, stride in zip(edges, strides, strict=True)
        )
        self.relu = nn.ReLU()

    def forward(self, older: Tensor, newer: Tensor) -> Tensor:
        nodes = [self.input_older(older), self.input_newer(newer)]
        shared: dict[int, Tensor] = {}
        for number in range(0, len(self.edges), 2):
            first, second = (self.edges[edge](self._source(edge, nodes, shared)) for edge in (number, number + 1))
            nodes.append(first + second)
        return torch.cat(nodes[INPUT_NODES:], dim=1)

    def _source(self, edge: int, nodes: list[Tensor], shared: dict[int, Tensor]) -> Tensor:
        source = self.sources[edge]
        if not self.behind_relu[edge]:
            return nodes[source]
        if not self.share_relus:
            return self.relu(nodes[source])
        if source not in shared:
            shared[source] = self.relu(nodes[source])
        return shared[source]


def _input(channels_in: int, channels: int, *, relu: bool, reduction: bool) -> nn.Sequential:
    layers: list[nn.Module] = [nn.ReLU()] if relu else []
    if reduction:
        return nn.Sequential(*layers, FactorizedReduction(channels_in, channels, affine=True))
    return nn.Sequential(*layers, nn.Conv2d(channels_in, channels, 1, bias=False), nn.BatchNorm2d(channels))


def _after_relu(operation: str, channels: int, stride: int) -> nn.Module:
    """An edge's module behind its first ReLU, which the cell applies (once per node where ReLUs are shared)."""
    if operation == "max_pool":
        return nn.MaxPool2d(3, stride=stride, padding=1)
    if operation == "avg_pool":
        return nn.AvgPool2d(3, stride=stride, padding=1, count_include_pad=False)
    if operation == "skip":
        return nn.Identity() if stride == 1 else FactorizedReduction(channels, channels, affine=True)
    kernel = int(operation[-1])
    if operation.startswith("sep_dil"):
        return _depthwise_pointwise(channels, kernel, stride, dilation=2)
    return nn.Sequential(
        _depthwise_pointwise(channels, kernel, stride, dilation=1),
        nn.ReLU(),
        _depthwise_pointwise(channels, kernel, 1, dilation=1),
    )


def _depthwise_pointwise(channels: int, kernel: int, stride: int, *, dilation: int) -> nn.Sequential:
    padding = dilation * (kernel // 2)
    return nn.Sequential(
        nn.Conv2d(channels, channels, kernel, stride, padding, dilation, groups=channels, bias=False),
        nn.Conv2d(channels, channels, 1, bias=False),
        nn.BatchNorm2d(channels),
    )
