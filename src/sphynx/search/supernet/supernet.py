"""The supernet over the Sphynx space: every cell holds all edges and operations; a mixture says how they are used.

The skeleton (depth, channels, reduce positions, image, classes, stem, conv_stack) comes from a `Design`; its genotype
plays no part. All cells of a kind share the mixture, none their weights. Batch norm has no scale inside cells, where
it would compete with the mixture, and uses batch statistics throughout (`fan`).

The paper's text and its released code build different supernets:

    text        Conv1x1 - BN - ReLU over the joined nodes: the cell's output is rectified; channels x 4 at a reduction
    released    ReLU - Conv1x1 (with bias) - BN: every node is rectified, the cell's output is not; channels x 2
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from sphynx.network.builder import build_stem, round_up
from sphynx.network.cell import build_inputs
from sphynx.network.operations import pointwise
from sphynx.search.choices import SupernetForm
from sphynx.search.supernet.cellspace import CellSpace, Kind
from sphynx.search.supernet.fan import Fan
from sphynx.search.supernet.lanes import Part, start
from sphynx.search.supernet.mixture import Mixture, Mixtures
from sphynx.space.cell import INPUT_NODES
from sphynx.space.design import Design


class Supernet(nn.Module):
    """`channel_multiple` rounds every width up, for hardware that wants it; `widen` fills such a supernet."""

    def __init__(
        self,
        skeleton: Design,
        space: CellSpace,
        *,
        form: SupernetForm = "text",
        channel_divisor: int = 1,
        channel_multiple: int = 1,
    ) -> None:
        super().__init__()
        self.skeleton, self.space, self.form = skeleton, space, form
        self.channel_divisor = channel_divisor
        self.stem = build_stem(skeleton, channel_multiple)
        self.kinds = [_kind(skeleton, position) for position in range(skeleton.depth)]
        self.cells = nn.ModuleList()
        older = newer = round_up(skeleton.feature_map.channels, channel_multiple)
        for position in range(skeleton.depth):
            padded = round_up(skeleton.cell_channels(position), channel_multiple)
            self.cells.append(SupernetCell(skeleton, position, older, newer, space, form, channel_divisor, padded))
            older, newer = newer, padded
        self.head = nn.Linear(newer, skeleton.classes)
        _use_batch_statistics(self)

    @property
    def cell_counts(self) -> dict[Kind, int]:
        reducing = len(self.skeleton.reduce_positions)
        return {"normal": self.skeleton.depth - reducing, "reduce": reducing}

    def forward(self, x: Tensor, mixtures: Mixtures) -> Tensor:
        older, newer = self.stem(x)
        for kind, cell in zip(self.kinds, self.cells, strict=True):
            older, newer = newer, cell(older, newer, mixtures[kind])
        return self.head(newer.mean(dim=(2, 3)))


class SupernetCell(nn.Module):
    by_source: Tensor

    def __init__(
        self,
        skeleton: Design,
        position: int,
        channels_older: int,
        channels_newer: int,
        space: CellSpace,
        form: SupernetForm,
        channel_divisor: int,
        padded: int,
    ) -> None:
        super().__init__()
        channels = skeleton.cell_channels(position)
        self.kind = _kind(skeleton, position)
        self.space = space
        self.input_older, self.input_newer = build_inputs(
            channels_older,
            channels_newer,
            channels,
            older_is_larger=skeleton.older_input_is_larger(position),
            padded=padded,
        )
        # The targets of node s, in order; the last intermediate node has none.
        self.targets = [[t for t in space.intermediates if t > s] for s in range(space.intermediates[-1])]
        self.fans = nn.ModuleList(
            Fan(
                space.candidates,
                channels,
                len(targets),
                stride=2 if self.kind == "reduce" and source < INPUT_NODES else 1,
                conv_stack=skeleton.conv_stack,
                channel_divisor=channel_divisor,
                padded=padded,
            )
            for source, targets in enumerate(self.targets)
        )
        order = [space.edge_number(s, t) for s, targets in enumerate(self.targets) for t in targets]
        self.register_buffer("by_source", torch.tensor(order), persistent=False)
        joined = len(space.intermediates) * padded
        self.rectifies_nodes = form == "released"
        self.output = (
            nn.Sequential(nn.Conv2d(joined, padded, 1), nn.BatchNorm2d(padded, affine=False))
            if self.rectifies_nodes
            else pointwise(joined, padded, affine=False)
        )
        self.activation = nn.ReLU()

    def forward(self, older: Tensor, newer: Tensor, mixture: Mixture) -> Tensor:
        started = [start(self.input_older, older), start(self.input_newer, newer)]
        inputs = [part.join() for part in started]
        nodes = self._all(inputs, mixture) if mixture.paths is None else self._choose(inputs, mixture)
        joined = torch.cat(nodes[INPUT_NODES:], dim=1)
        if self.rectifies_nodes:
            return self.output(self.activation(joined))
        return self.activation(self.output(joined))

    def _all(self, nodes: list[Tensor], mixture: Mixture) -> list[Tensor]:
        assert mixture.weights is not None  # without paths, the weights are what says anything at all
        sizes = [len(targets) for targets in self.targets]
        weights = torch.split(mixture.weights.index_select(0, self.by_source), sizes)
        edges: Sequence[Tensor | None] = [None] * len(sizes)
        if mixture.edges is not None:
            edges = torch.split(mixture.edges.index_select(0, self.by_source), sizes)

        def mix(source: int) -> Part:
            fan = self.fans[source]
            assert isinstance(fan, Fan)
            return start(fan.mix, nodes[source], weights[source], edges[source])

        # Both inputs reach every intermediate node; each of these is complete once the one before it was mixed. It is
        # summed apart from the later ones, so that it lies in one piece: convolutions would copy it each time.
        older, newer = (_next_and_later(part.join()) for part in [mix(source) for source in range(INPUT_NODES)])
        arriving = [a + b for a, b in zip(older, newer, strict=True)]
        for source in range(INPUT_NODES, len(sizes)):
            nodes.append(arriving[0].squeeze(1))
            mixed = _next_and_later(mix(source).join())
            arriving = [a + b for a, b in zip(_next_and_later(arriving[1]), mixed, strict=True)]
        return [*nodes, arriving[0].squeeze(1)]

    def _choose(self, nodes: list[Tensor], mixture: Mixture) -> list[Tensor]:
        assert mixture.paths is not None
        scales = None if mixture.edges is None else mixture.edges.unbind()
        for target in self.space.intermediates:
            total: Tensor | None = None
            for source, edge in enumerate(self.space.incoming(target)):
                for column in mixture.paths[edge]:
                    if column == len(self.space.operations):  # zero
                        continue
                    fan = self.fans[source]
                    y = fan.one(nodes[source], column, self.targets[source].index(target))  # type: ignore[operator]  # a fan
                    if scales is not None:
                        y = y * scales[edge].to(y.dtype)
                    total = y if total is None else total + y
            nodes.append(self._nothing(nodes[0]) if total is None else total)
        return nodes

    def _nothing(self, x: Tensor) -> Tensor:
        """A node all of whose edges carry zero."""
        if self.kind == "reduce":
            return torch.zeros_like(x[:, :, ::2, ::2])
        return torch.zeros_like(x)


def _next_and_later(by_target: Tensor) -> tuple[Tensor, ...]:
    return torch.split(by_target, [1, by_target.shape[1] - 1], dim=1)


def _kind(skeleton: Design, position: int) -> Kind:
    return "reduce" if position in skeleton.reduce_positions else "normal"


def _use_batch_statistics(module: nn.Module) -> None:
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.track_running_stats = False
            part.running_mean = part.running_var = part.num_batches_tracked = None
