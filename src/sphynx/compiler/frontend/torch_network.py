"""Networks of ours, trained: torch modules are walked into a fused graph, Sphynx cells and streams by their designs,
ResNet18 and VGG11 layer by layer."""

from __future__ import annotations

from collections.abc import Container
from functools import partial

import numpy as np
from torch import nn

from sphynx.compiler.frontend.activation import walk_activation
from sphynx.compiler.frontend.cells import average_windows, walk_cells
from sphynx.compiler.frontend.graph import walk_graph
from sphynx.compiler.frontend.readable import Readable, Walk, torch_judge
from sphynx.compiler.frontend.stream import walk_stream
from sphynx.compiler.frontend.torch_layers import TorchNumbers, array_of, fixed_norm, kernel_of
from sphynx.compiler.fusion.affine import Node, Window
from sphynx.compiler.fusion.fuse import Fused, Fuser
from sphynx.compiler.fusion.nonlinear import Run, maximum, pools_first
from sphynx.compiler.fusion.window_sums import adaptive_spans, sliding_spans
from sphynx.errors import InputError
from sphynx.network.build import AnyNetwork, as_designed, is_network
from sphynx.network.builder import SphynxNetwork
from sphynx.network.graph import GraphNetwork
from sphynx.network.macro import MacroNetwork
from sphynx.network.micro import MicroNetwork
from sphynx.network.reduced import ReducedActivation, ReducedNetwork
from sphynx.network.reference import BasicBlock, ResNet18, Vgg11, WideResNet
from sphynx.network.stream import StreamNetwork
from sphynx.network.trained import TrainedNetwork
from sphynx.program.outputs import LOGITS
from sphynx.space.tally import windows


def read_trained(trained: TrainedNetwork) -> Readable:
    """A run's program is called as its design, a model's as the model."""
    network = as_designed(trained.module)
    name = trained.name if trained.is_model else network.design.name
    return Readable(
        walk_of(network),
        trained.mean,
        trained.std,
        name,
        network.design,
        judge=partial(torch_judge, network, is_ours=True),
        class_names=trained.class_names,
        made_from=f"model {name}" if trained.is_model else "",
    )


def walk_of(network: AnyNetwork) -> Walk:
    """The walk of a network of ours."""
    return partial(trace, as_designed(network))


def trace(
    network: AnyNetwork,
    mean: tuple[float, ...],
    std: tuple[float, ...],
    *,
    cuts: Container[str] = (),
    outline: bool = False,
) -> Fused:
    """Trace the network with its running statistics, from pixels 0 .. 255 to logits, in double precision."""
    fuser = Fuser(network.design.image, mean, std, cuts=cuts, outline=outline)
    reduced = {}
    if isinstance(network, ReducedNetwork):
        reduced = {layer.layer: layer for layer in network.design.layers}
        inner = network.inner
        assert is_network(inner)
        network = inner
    numbers = TorchNumbers(network, reduced)
    if isinstance(network, SphynxNetwork):
        return fuser.finish(walk_cells(fuser, network.design, numbers), LOGITS)
    if isinstance(network, StreamNetwork):
        return fuser.finish(walk_stream(fuser, network.design, numbers), LOGITS)
    if isinstance(network, GraphNetwork):
        return fuser.finish(walk_graph(fuser, numbers, network), LOGITS)
    walker, x = _Walker(fuser, numbers), fuser.input
    if isinstance(network, ResNet18):
        x = walker.sequence(network.stem, x, "stem")
        for number, block in enumerate(network.blocks):
            x = walker.block(block, x, f"blocks.{number}")
        return fuser.finish(walker.head(network.head, x), LOGITS)
    if isinstance(network, MacroNetwork):
        return fuser.finish(walker.macro(network, x), LOGITS)
    if isinstance(network, MicroNetwork | WideResNet):
        kind = "networks of the micro-search space" if isinstance(network, MicroNetwork) else "wide residual networks"
        raise InputError(
            f"{kind} are trained for comparison and as teachers only",
            where=network.design.name or "design",
            remedy="Compile a Sphynx, stream, ResNet18 or VGG11 network.",
        )
    assert isinstance(network, Vgg11)
    x = walker.sequence(network.features, x, "features")
    return fuser.finish(walker.sequence(network.classifier, x, "classifier"), LOGITS)


class _Walker:
    """Layers are called in programs as their modules are."""

    def __init__(self, fuser: Fuser, numbers: TorchNumbers) -> None:
        self.fuser, self.numbers = fuser, numbers

    def block(self, block: nn.Module, x: Node, name: str) -> Node:
        assert isinstance(block, BasicBlock)
        long = self.sequence(block.second, self.sequence(block.first, x, f"{name}.first"), f"{name}.second")
        short = self.layer(block.shortcut, x, f"{name}.shortcut")
        return self.layer(block.activation, long + short, f"{name}.activation")

    def macro(self, network: MacroNetwork, x: Node) -> Node:
        x = self.sequence(network.stem, x, "stem")
        for number, (stage, layers) in enumerate(zip(network.design.stages, network.stages, strict=True)):
            made: list[Node] = []
            for place, (described, layer) in enumerate(zip(stage, layers.children(), strict=True)):
                for skip in described.skips:
                    x = x + made[skip]
                x = self.layer(layer, x, f"stages.{number}.{place}")
                made.append(x)
        return self.head(network.head, self.layer(network.activation, x, "activation"))

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
            return walk_activation(self.fuser, self.numbers, name, x, name)
        if isinstance(layer, nn.BatchNorm2d):
            return self.fuser.scale(x, *fixed_norm(layer))
        if isinstance(layer, nn.Conv2d):
            return self.convolution(layer, x)
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
        y = self.fuser.convolve(x, kernel_of(layer.weight, outline=self.fuser.is_outline), window, layer.groups)
        return y if layer.bias is None else self.fuser.scale(y, np.ones(layer.out_channels), array_of(layer.bias))

    def average_pool(self, layer: nn.AvgPool2d, x: Node, name: str) -> Node:
        kernel, stride, padding = (
            value[0] if isinstance(value, tuple) else value
            for value in (layer.kernel_size, layer.stride, layer.padding)
        )
        return average_windows(self.fuser, x, kernel, stride, padding, name, counts_padding=layer.count_include_pad)

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
