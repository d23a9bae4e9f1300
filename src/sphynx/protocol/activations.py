"""The nonlinear steps of a program as layers of the protocol: ReLUs by the chosen backend, squares, truncations and
gates by their own.

A batch's elements of one step are one layer. Both parties build the same list from the public program.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sphynx.program.backends import Backend
from sphynx.program.ir import Activation, Gate, Program, Relu, Square
from sphynx.protocol import arithmetic
from sphynx.protocol.channel import Channel
from sphynx.protocol.floor import FloorLayer
from sphynx.protocol.gate import GateLayer
from sphynx.protocol.ots import ClientOts, ServerOts
from sphynx.protocol.relu import Arrays, ReluLayer, relu_client, relu_server
from sphynx.protocol.relu_layer import Words, range_bits
from sphynx.protocol.square import SquareLayer

OtherLayer = SquareLayer | FloorLayer | GateLayer
Layer = ReluLayer | OtherLayer
Layers = dict[str, Layer]


class Tensors(Protocol):
    """A party's shares by name."""

    def __getitem__(self, name: str, /) -> NDArray[Any]: ...


def activation_layers(program: Program, batch: int) -> Layers:
    """Plan the layers in the order of evaluation. Refuses by its name a step that the protocol does not compute."""
    layers: Layers = {}
    for step in program.activations:
        shape, k = program.shapes[step.name], program.ring_bits
        if isinstance(step, Gate):
            layers[step.name] = GateLayer(step.name, k, batch * shape.channels, shape.height * shape.width)
            continue
        w, count = range_bits(program, step), batch * shape.size
        if isinstance(step, Relu):
            layers[step.name] = ReluLayer.planned(step.name, w=w, k=k, f=step.truncate, count=count)
        elif isinstance(step, Square):
            layers[step.name] = SquareLayer(step.name, w, k, step.truncate_before, step.truncate_after, count)
        else:
            layers[step.name] = FloorLayer(step.name, w, k, step.truncate, count)
    return layers


def uses_up(layers: Layers, backend: Backend) -> bool:
    """Return whether any of them needs OTs in which the client is the sender."""
    return any(
        backend == "gmw" if isinstance(layer, ReluLayer) else any(plan.uses_up for _, plan in layer.parts)
        for layer in layers.values()
    )


def entering(step: Activation, tensors: Tensors) -> NDArray[Any]:
    """Take what a layer reads of a party's shares: a map, or a map and behind it its gates."""
    if isinstance(step, Gate):
        return np.concatenate([tensors[name].reshape(-1) for name in step.sources])
    return tensors[step.source]


def entering_shape(program: Program, step: Activation, batch: int) -> tuple[int, ...]:
    if isinstance(step, Gate):
        return (batch * sum(program.shapes[name].size for name in step.sources),)
    return (batch, *program.shapes[step.source])


def prepare_server(channel: Channel, ots: ServerOts, backend: Backend, layers: Layers) -> dict[str, Arrays]:
    """The server's material of every layer."""
    relus, others = _by_kind(layers)
    materials = relu_server(backend).offline(channel, ots, relus) if relus else []
    materials += arithmetic.prepare_server(channel, ots, others)
    return _by_name(relus, others, materials)


def prepare_client(
    channel: Channel,
    ots: ClientOts,
    backend: Backend,
    layers: Layers,
    shares: Mapping[str, Words],
    new_masks: Mapping[str, Words],
) -> dict[str, Arrays]:
    """The client's material, for its share x_c of what enters each layer and its mask r' of what leaves it."""
    relus, others = _by_kind(layers)
    materials: list[Arrays] = []
    if relus:
        own = [shares[layer.name].reshape(-1) for layer in relus]
        leaving = [new_masks[layer.name].reshape(-1) for layer in relus]
        materials += relu_client(backend).offline(channel, ots, relus, own, leaving)
    materials += arithmetic.prepare_client(channel, ots, others, [shares[o.name].reshape(-1) for o in others])
    return _by_name(relus, others, materials)


def run_server(channel: Channel, backend: Backend, layer: Layer, material: Arrays, x: Words) -> Words:
    """The server's share y - r' from its share of x."""
    if isinstance(layer, ReluLayer):
        return relu_server(backend).online(channel, layer, material, x)
    return layer.server(channel, material, x)


def run_client(channel: Channel, backend: Backend, layer: Layer, material: Arrays, x: Words, new_mask: Words) -> None:
    if isinstance(layer, ReluLayer):
        relu_client(backend).online(channel, layer, material, x, new_mask)
    else:
        layer.client(channel, material, x, new_mask)


def _by_kind(layers: Layers) -> tuple[list[ReluLayer], list[OtherLayer]]:
    relus = [layer for layer in layers.values() if isinstance(layer, ReluLayer)]
    return relus, [layer for layer in layers.values() if not isinstance(layer, ReluLayer)]


def _by_name(relus: list[ReluLayer], others: list[OtherLayer], materials: list[Arrays]) -> dict[str, Arrays]:
    names = [layer.name for layer in (*relus, *others)]
    return dict(zip(names, materials, strict=True))
