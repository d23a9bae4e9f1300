"""Any design as a network: one place that knows which class builds which design."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TypeGuard

import torch
from torch import nn

from sphynx.network.builder import SphynxNetwork
from sphynx.network.graph import GraphNetwork
from sphynx.network.macro import MacroNetwork
from sphynx.network.micro import MicroNetwork
from sphynx.network.reduced import ReducedNetwork
from sphynx.network.reference import ResNet18, Vgg11, WideResNet
from sphynx.network.stream import StreamNetwork
from sphynx.network.widen import narrowed, widened
from sphynx.space.files import AnyDesign
from sphynx.space.graph import GraphDesign
from sphynx.space.macro import MacroDesign
from sphynx.space.micro import MicroDesign
from sphynx.space.reduced import ReducedDesign
from sphynx.space.reference import ResNet18Design, Vgg11Design, WideResNetDesign
from sphynx.space.stream import StreamDesign

AnyNetwork = (
    SphynxNetwork
    | StreamNetwork
    | GraphNetwork
    | MacroNetwork
    | MicroNetwork
    | ResNet18
    | Vgg11
    | WideResNet
    | ReducedNetwork
)


def build_network(design: AnyDesign, *, auxiliary: bool = False, drop_path: bool = False) -> AnyNetwork:
    """Build a design as a torch module, with random weights. The auxiliary head and drop-path belong to networks of
    Sphynx cells; the others have neither.

        >>> network = sphynx.build_network(sphynx.Design.load("design.json"))
        >>> sum(weights.numel() for weights in network.parameters()) == network.design.parameters
        True
    """
    if isinstance(design, ReducedDesign):
        return ReducedNetwork(design, build_network(design.base))
    if isinstance(design, StreamDesign):
        return StreamNetwork(design)
    if isinstance(design, ResNet18Design):
        return ResNet18(design)
    if isinstance(design, Vgg11Design):
        return Vgg11(design)
    if isinstance(design, WideResNetDesign):
        return WideResNet(design)
    if isinstance(design, GraphDesign):
        return GraphNetwork(design)
    if isinstance(design, MacroDesign):
        return MacroNetwork(design)
    if isinstance(design, MicroDesign):
        return MicroNetwork(design)
    return SphynxNetwork(design, auxiliary=auxiliary, drop_path=drop_path)


def is_network(module: nn.Module) -> TypeGuard[AnyNetwork]:
    """Return whether `build_network` makes modules of this class."""
    return isinstance(module, AnyNetwork)


def with_width_multiple(network: AnyNetwork, multiple: int) -> AnyNetwork:
    """Widen a Sphynx network where hardware trains it faster; widths of reference networks stay as their users chose
    them."""
    return widened(network, multiple) if isinstance(network, SphynxNetwork) else network


def width_multiple_of(network: nn.Module) -> int:
    return network.channel_multiple if isinstance(network, SphynxNetwork) else 1


def as_designed(network: AnyNetwork) -> AnyNetwork:
    return narrowed(network) if isinstance(network, SphynxNetwork) else network


def set_drop_path(network: AnyNetwork, probability: float) -> None:
    if isinstance(network, SphynxNetwork):
        network.drop_path.fill_(probability)


def with_class_order(network: AnyNetwork, numbers: Sequence[int]) -> AnyNetwork:
    """A copy whose logit i is the network's logit numbers[i]."""
    ordered = copy.deepcopy(network)
    with torch.no_grad():
        for parameter in _head(ordered).parameters():
            parameter.copy_(parameter[list(numbers)])
    return ordered


def divide_logits(network: AnyNetwork, temperature: float) -> None:
    """Divide the head's weights, and with them the logits."""
    with torch.no_grad():
        for parameter in _head(network).parameters():
            parameter.div_(temperature)


def _head(network: AnyNetwork) -> nn.Linear:
    of_inference = (module for name, module in network.named_modules() if not name.startswith("auxiliary"))
    *_, head = (module for module in of_inference if isinstance(module, nn.Linear))
    return head
