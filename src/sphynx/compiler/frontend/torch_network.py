"""Walks a trained torch network, layer by layer, into a fused graph: Sphynx cells, streams, ResNet18, VGG11."""

from __future__ import annotations

from collections.abc import Container

import numpy as np
from torch import nn

from sphynx.compiler.frontend.torch_activation import walk_activation
from sphynx.compiler.frontend.torch_layers import array_of, fixed_norm, kernel_of
from sphynx.compiler.frontend.torch_stream import walk_stream
from sphynx.compiler.fusion.affine import Node, Window
from sphynx.compiler.fusion.fuse import Fused, Fuser
from sphynx.compiler.fusion.nonlinear import Run, maximum, pools_first
from sphynx.compiler.fusion.window_sums import adaptive_spans, sliding_spans
from sphynx.errors import InputError
from sphynx.network.build import AnyNetwork, is_network
from sphynx.network.builder import ImageNetStem, SmallStem, SphynxNetwork
from sphynx.network.cell import Cell
from sphynx.network.micro import MicroNetwork
from sphynx.network.operations import FactorizedReduction
from sphynx.network.reduced import ReducedActivation, ReducedNetwork
from sphynx.network.reference import BasicBlock, ResNet18, Vgg11, WideResNet
from sphynx.network.stream import StreamNetwork
from sphynx.space.cell import INPUT_NODES
from sphynx.space.tally import windows

LOGITS = "logits"


def trace(
    network: AnyNetwork,
    mean: tuple[float, ...],
    std: tuple[float, ...],
    *,
    cuts: Container[str] = (),
    outline: bool = False,
) -> Fused:
    """Trace the network with its running statistics, from pixels 0 .. 255 to logits, in double precision."""
    walker = _Walker(Fuser(network.design.image, mean, std, cuts=cuts, outline=outline))
    if isinstance(network, ReducedNetwork):
        inner = network.inner
        assert is_network(inner)
        network = inner
    x = walker.fuser.input
    if isinstance(network, SphynxNetwork):
        return walker.fuser.finish(walker.sphynx(network, x), LOGITS)
    if isinstance(network, StreamNetwork):
        return walker.fuser.finish(walk_stream(walker.fuser, network), LOGITS)
    if isinstance(network, ResNet18):
        x = walker.sequence(network.stem, x, "stem")
        for number, block in enumerate(network.blocks):
            x = walker.block(block, x, f"blocks.{number}")
        return walker.fuser.finish(walker.head(network.head, x), LOGITS)
    if isinstance(network, MicroNetwork | WideResNet):
        kind = "networks of the micro-search space" if isinstance(network, MicroNetwork) else "wide residual networks"
        raise InputError(
            f"{kind} are trained for comparison and as teachers only",
            where=network.design.name or "design",
            remedy="Compile a Sphynx, stream, ResNet18 or VGG11 network.",
        )
    assert isinstance(network, Vgg11)
    x = walker.sequence(network.features, x, "features")
    return walker.fuser.finish(walker.sequence(network.classifier, x, "classifier"), LOGITS)


class _Walker:
    def __init__(self, fuser: Fuser) -> None:
        self.fuser = fuser

    def sphynx(self, network: SphynxNetwork, x: Node) -> Node:
        stem = network.stem
        if isinstance(stem, ImageNetStem):
            older = self.sequence(stem.to_quarter, x, "stem.to_quarter")
            newer = self.sequence(stem.to_eighth, older, "stem.to_eighth")
        else:
            assert isinstance(stem, SmallStem)
            older = newer = self.fuser.joint(self.sequence(stem.layers, x, "stem"), "stem")
        for position, cell in enumerate(network.cells):
            older, newer = newer, self.cell(cell, older, newer, f"cells.{position}")
        return self.head(network.head, newer)

    def cell(self, cell: nn.Module, older: Node, newer: Node, name: str) -> Node:
        assert isinstance(cell, Cell)
        nodes = [
            self.fuser.joint(self.layer(cell.input_older, older, f"{name}.input_older"), f"{name}.nodes.0"),
            self.fuser.joint(self.layer(cell.input_newer, newer, f"{name}.input_newer"), f"{name}.nodes.1"),
        ]
        convolved = {
            source for source, edge in zip(cell.sources, cell.edges, strict=True) if not isinstance(edge, nn.Identity)
        }
        for number in range(0, len(cell.edges), 2):
            first, second = (
                self.layer(cell.edges[edge], nodes[cell.sources[edge]], f"{name}.edges.{edge}")
                for edge in (number, number + 1)
            )
            total = first + second
            nodes.append(self.fuser.joint(total, f"{name}.nodes.{len(nodes)}") if len(nodes) in convolved else total)
        # A 1x1 convolution of joined nodes is the sum of its parts.
        convolution, norm = cell.output
        assert isinstance(convolution, nn.Conv2d)
        parts = np.split(array_of(convolution.weight), len(nodes) - INPUT_NODES, axis=1)
        joined: Node | None = None
        for node, part in zip(nodes[INPUT_NODES:], parts, strict=True):
            window = Window(1, 1, node.shape.height, node.shape.width)
            term = self.fuser.convolve(node, part, window)
            joined = term if joined is None else joined + term
        assert joined is not None
        return self.layer(cell.activation, self.layer(norm, joined, f"{name}.output"), f"{name}.activation")

    def block(self, block: nn.Module, x: Node, name: str) -> Node:
        assert isinstance(block, BasicBlock)
        long = self.sequence(block.second, self.sequence(block.first, x, f"{name}.first"), f"{name}.second")
        short = self.layer(block.shortcut, x, f"{name}.shortcut")
        return self.layer(block.activation, long + short, f"{name}.activation")

    def head(self, head: nn.Linear, x: Node) -> Node:
        pooled = self.fuser.average(x, ((0, x.shape.height),), ((0, x.shape.width),), "head")
        return self.dense(head, pooled)

    def sequence(self, layers: nn.Module, x: Node, name: str) -> Node:
        """A max pool behind a ReLU goes before it where that is cheaper: the two commute."""
        children = list(layers.named_children())
        for number in range(len(children)):
            pair = children[number : number + 2]
            if _commute(x, *(layer for _, layer in pair)):
                children[number : number + 2] = reversed(pair)
            child, layer = children[number]
            if number and isinstance(layer, nn.Conv2d):
                x = self.fuser.joint(x, f"{name}.{child}.input")
            x = self.layer(layer, x, f"{name}.{child}")
        return x

    def layer(self, layer: nn.Module, x: Node, name: str) -> Node:
        if isinstance(layer, nn.Sequential):
            return self.sequence(layer, x, name)
        if isinstance(layer, nn.Identity):
            return x
        if isinstance(layer, nn.ReLU | ReducedActivation):
            return walk_activation(self.fuser, layer, x, name)
        if isinstance(layer, nn.BatchNorm2d):
            return self.fuser.scale(x, *fixed_norm(layer))
        if isinstance(layer, nn.Conv2d):
            return self.convolution(layer, x)
        if isinstance(layer, FactorizedReduction):
            return self.reduction(layer, x)
        if isinstance(layer, nn.AvgPool2d):
            return self.average_pool(layer, x, name)
        if isinstance(layer, nn.AdaptiveAvgPool2d):
            return self.adaptive_pool(layer, x, name)
        if isinstance(layer, nn.MaxPool2d):
            return maximum(self.fuser, x, *_pool_runs(layer, x), name)
        if isinstance(layer, nn.Linear):
            return self.dense(layer, x)
        raise InputError(
            f"{type(layer).__name__} cannot be compiled",
            where=name,
            remedy="Use convolutions, pools, sums, linear layers, batch norm and ReLU.",
        )

    def convolution(self, layer: nn.Conv2d, x: Node) -> Node:
        (rows, columns), stride, dilation = layer.kernel_size, layer.stride[0], layer.dilation[0]
        top, left = (int(padding) for padding in layer.padding)
        height = windows(x.shape.height, rows, stride, top, dilation)
        width = windows(x.shape.width, columns, stride, left, dilation)
        window = Window(rows, columns, height, width, stride, dilation, top, left)
        y = self.fuser.convolve(x, kernel_of(self.fuser, layer.weight), window, layer.groups)
        return y if layer.bias is None else self.fuser.scale(y, np.ones(layer.out_channels), array_of(layer.bias))

    def reduction(self, layer: FactorizedReduction, x: Node) -> Node:
        """Two 1x1 convolutions of stride 2, one pixel apart, are one sparse 2x2 convolution."""
        channels = layer.norm.num_features
        odd = array_of(layer.odd.weight)
        even_channels = 0 if layer.even is None else layer.even.out_channels
        weights = np.zeros((channels, x.shape.channels, 2, 2))
        if layer.even is not None:
            weights[:even_channels, :, 0, 0] = array_of(layer.even.weight)[:, :, 0, 0]
        weights[even_channels : even_channels + len(odd), :, 1, 1] = odd[:, :, 0, 0]
        window = Window(2, 2, (x.shape.height + 1) // 2, (x.shape.width + 1) // 2, stride=2)
        return self.fuser.scale(self.fuser.convolve(x, weights, window), *fixed_norm(layer.norm))

    def average_pool(self, layer: nn.AvgPool2d, x: Node, name: str) -> Node:
        kernel, stride, padding = (
            value[0] if isinstance(value, tuple) else value
            for value in (layer.kernel_size, layer.stride, layer.padding)
        )
        rows, columns = (
            sliding_spans(n, kernel, stride, padding, windows(n, kernel, stride, padding)) for n in x.shape[1:]
        )
        counts = ((kernel,) * len(rows), (kernel,) * len(columns)) if layer.count_include_pad else None
        return self.fuser.average(x, rows, columns, name, counts=counts)

    def adaptive_pool(self, layer: nn.AdaptiveAvgPool2d, x: Node, name: str) -> Node:
        grid = layer.output_size
        assert isinstance(grid, tuple)
        rows, columns = (adaptive_spans(n, parts or n) for n, parts in zip(x.shape[1:], grid, strict=True))
        return self.fuser.average(x, rows, columns, name)

    def dense(self, layer: nn.Linear, x: Node) -> Node:
        """A dense layer reads channels, rows and columns in that order: a kernel of the whole map's size."""
        weights = array_of(layer.weight).reshape(layer.out_features, *x.shape)
        window = Window(x.shape.height, x.shape.width, 1, 1)
        y = self.fuser.convolve(x, weights, window)
        return self.fuser.scale(y, np.ones(layer.out_features), array_of(layer.bias))


def _commute(x: Node, first: nn.Module, second: nn.Module | None = None) -> bool:
    """Return whether the two are a ReLU and a max pool that had better come first."""
    if not isinstance(first, nn.ReLU) or not isinstance(second, nn.MaxPool2d):
        return False
    return pools_first(*_pool_runs(second, x), (x.shape.height, x.shape.width))


def _pool_runs(layer: nn.MaxPool2d, x: Node) -> tuple[list[Run], list[Run]]:
    kernel, stride, padding = (
        value[0] if isinstance(value, tuple) else value for value in (layer.kernel_size, layer.stride, layer.padding)
    )
    rows, columns = (
        [tuple(range(*span)) for span in sliding_spans(n, kernel, stride, padding, windows(n, kernel, stride, padding))]
        for n in x.shape[1:]
    )
    return rows, columns
