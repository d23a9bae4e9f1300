"""A Sphynx cell: two inputs, a graph of linear operations, Conv1x1-BN over the joined nodes, one ReLU."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sphynx.network.operations import FactorizedReduction, build_operation, pointwise
from sphynx.space.cell import INPUT_NODES
from sphynx.space.design import Design


def build_inputs(
    channels_older: int, channels_newer: int, channels: int, *, older_is_larger: bool, padded: int | None = None
) -> tuple[nn.Module, nn.Module]:
    """Brings the outputs of the two cells before to this cell's width (and the older one to its resolution)."""
    if older_is_larger:
        first: nn.Module = FactorizedReduction(channels_older, channels, affine=False, padded=padded)
    else:
        first = pointwise(channels_older, padded or channels, affine=False)
    return first, pointwise(channels_newer, padded or channels, affine=False)


class Cell(nn.Module):
    """`padded` is the width it is built with, at least the design's (see `network.widen`)."""

    def __init__(
        self, design: Design, position: int, channels_older: int, channels_newer: int, padded: int | None = None
    ) -> None:
        super().__init__()
        channels = design.cell_channels(position)
        padded = padded or channels
        reducing = position in design.reduce_positions
        nodes = design.genotype.reduce if reducing else design.genotype.normal
        self.sources = [edge.source for edges in nodes for edge in edges]
        self.input_older, self.input_newer = build_inputs(
            channels_older,
            channels_newer,
            channels,
            older_is_larger=design.older_input_is_larger(position),
            padded=padded,
        )
        self.edges = nn.ModuleList(
            build_operation(
                edge.operation,
                channels,
                stride=2 if reducing and edge.source < INPUT_NODES else 1,
                conv_stack=design.conv_stack,
                convolution=design.convolution,
                inner_relus=design.inner_relus,
                padded=padded,
            )
            for edges in nodes
            for edge in edges
        )
        self.output = pointwise(len(nodes) * padded, padded, affine=False)
        self.activation = nn.ReLU()

    def forward(self, older: Tensor, newer: Tensor, keep: Tensor | None = None) -> Tensor:
        """`keep` (edges, batch, 1, 1, 1) scales each edge per sample: drop-path."""
        nodes = [self.input_older(older), self.input_newer(newer)]
        for number in range(0, len(self.edges), 2):
            first, second = (self._edge(edge, nodes, keep) for edge in (number, number + 1))
            nodes.append(first + second)
        return self.activation(self.output(torch.cat(nodes[INPUT_NODES:], dim=1)))

    def _edge(self, number: int, nodes: list[Tensor], keep: Tensor | None) -> Tensor:
        operation = self.edges[number]
        x: Tensor = operation(nodes[self.sources[number]])
        # A skip at stride 1 is never dropped, so that each node always receives something where one is present.
        if keep is None or isinstance(operation, nn.Identity):
            return x
        return (x * keep[number]).to(x.dtype)
