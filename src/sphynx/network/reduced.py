"""Reduced networks in torch: another network whose ReLUs are replaced as `space.reduced` says; which ReLUs one has."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from sphynx.errors import InputError
from sphynx.network.observe import observe
from sphynx.network.square import Square
from sphynx.space.reduced import IDENTITY, RELU, REMOVED, SQUARE, Activations, ReducedDesign
from sphynx.space.tally import Shape


class ReducedActivation(nn.Module):
    """Stands in the place of a ReLU. What each value becomes is part of the design, not of the weights."""

    relu: Tensor
    alive: Tensor
    squared: Tensor

    def __init__(self, described: Activations) -> None:
        super().__init__()
        channels, height, width = described.shape
        kinds = torch.frombuffer(bytearray(described.kinds.encode()), dtype=torch.uint8)
        kinds = kinds.view(channels, height, width) if described.is_per_value else kinds.view(channels, 1, 1)
        self.described = described
        self.register_buffer("relu", kinds == ord(RELU), persistent=False)
        self.register_buffer("alive", kinds != ord(REMOVED), persistent=False)
        self.register_buffer("squared", kinds == ord(SQUARE), persistent=False)
        self._removes = REMOVED in described.kinds
        self.square = Square(channels) if SQUARE in described.kinds else None

    def forward(self, x: Tensor) -> Tensor:
        shape = x.shape
        if x.ndim == 2:  # behind a dense layer
            x = x[:, :, None, None]
        y = torch.where(self.relu, functional.relu(x), x)
        if self.square is not None:
            y = torch.where(self.squared, self.square(x), y)
        if self._removes:
            y = y * self.alive
        return y.view(shape)


class ReducedNetwork(nn.Module):
    """`inner` is the base network, in which every layer that the design names is a `ReducedActivation`."""

    def __init__(self, design: ReducedDesign, inner: nn.Module) -> None:
        super().__init__()
        self.design = design
        self.inner = inner
        modules = dict(inner.named_modules())
        for described in design.layers:
            if not isinstance(modules.get(described.layer), nn.ReLU):
                raise InputError(
                    f"the network has no ReLU layer {described.layer!r}",
                    where=design.name or "reduced design",
                    remedy="Use the design as `sphynx reduce` wrote it.",
                )
            inner.set_submodule(described.layer, ReducedActivation(described))

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x)


def rectified_layers(network: nn.Module, image: Shape) -> dict[str, Shape]:
    """The ReLU layers by the names of their modules, in the order in which they run, with the shapes of their maps.

    Refuses a network with a ReLU that no module of its own computes: it could not be replaced.
    """
    names: dict[nn.Module, str] = {m: name for name, m in network.named_modules() if isinstance(m, nn.ReLU)}
    found: list[tuple[str, Shape]] = []

    def seen(module: nn.Module, _given: Any, made: Tensor) -> None:
        found.append((names[module], Shape(*made.shape[1:], *(1,) * (4 - made.ndim))))

    hooks = [module.register_forward_hook(seen) for module in names]
    try:
        relus = observe(network, image).relus
    finally:
        for hook in hooks:
            hook.remove()
    layers = dict(found)
    if len(layers) < len(found) or sum(shape.size for shape in layers.values()) != relus:
        raise InputError(
            "some of its ReLUs are not layers of their own",
            where=type(network).__name__,
            remedy="Give each ReLU a module, nn.ReLU(), that is used once.",
        )
    return layers


def replace_relus(network: nn.Module, made: Mapping[str, nn.Module]) -> nn.Module:
    """A copy of the network with other modules in the places of these ReLU layers."""
    changed = copy.deepcopy(network)
    for name, module in made.items():
        changed.set_submodule(name, module)
    return changed


def all_relus(layers: Mapping[str, Shape], kind: str = RELU) -> dict[str, str]:
    """The letters of a network whose channels are all of one kind."""
    return {name: kind * shape.channels for name, shape in layers.items()}


def describe_layers(layers: Mapping[str, Shape], kinds: Mapping[str, str]) -> tuple[Activations, ...]:
    return tuple(Activations(name, shape, kinds[name]) for name, shape in layers.items())


def letters(kept: Tensor, otherwise: str = IDENTITY) -> str:
    """A letter for each element: a ReLU where it is kept."""
    return "".join(RELU if keep else otherwise for keep in kept.flatten().tolist())
