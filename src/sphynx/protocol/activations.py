"""The nonlinear steps of a program as layers of the protocol: ReLUs by the chosen backend, squares by their own.

A batch's elements of one step are one layer. Both parties build the same list from the public program.
"""

from __future__ import annotations

from collections.abc import Mapping

from sphynx.program.backends import Backend
from sphynx.program.ir import Program, Relu, Square
from sphynx.protocol.channel import Channel
from sphynx.protocol.ots import ClientOts, ServerOts
from sphynx.protocol.relu import Arrays, ReluLayer, relu_client, relu_server
from sphynx.protocol.relu_layer import Words
from sphynx.protocol.square import SquareClient, SquareLayer, SquareServer

Layers = dict[str, ReluLayer | SquareLayer]


def activation_layers(program: Program, batch: int) -> Layers:
    """In the order of evaluation. Refuses by its name a step that the protocol does not compute."""
    ranges = {step.name: step.range_bits for step in program.linears}
    layers: Layers = {}
    for step in program.steps:
        if not isinstance(step, Relu | Square):
            continue
        w, k, count = ranges[step.source], program.ring_bits, batch * program.shapes[step.name].size
        if isinstance(step, Relu):
            # A range is also a range of more bits: truncation must leave a bit beside the sign.
            wide_enough = max(w, step.truncate + 2)
            layers[step.name] = ReluLayer.planned(step.name, w=wide_enough, k=k, f=step.truncate, count=count)
        else:
            layers[step.name] = SquareLayer(step.name, w, k, step.truncate_before, step.truncate_after, count)
    return layers


def prepare_server(channel: Channel, ots: ServerOts, backend: Backend, layers: Layers) -> dict[str, Arrays]:
    """The server's material of every layer."""
    relus, squares = _by_kind(layers)
    materials = relu_server(backend).offline(channel, ots, relus) if relus else []
    materials += SquareServer().offline(channel, ots, squares) if squares else []
    return _by_name(relus, squares, materials)


def prepare_client(
    channel: Channel,
    ots: ClientOts,
    backend: Backend,
    layers: Layers,
    shares: Mapping[str, Words],
    new_masks: Mapping[str, Words],
) -> dict[str, Arrays]:
    """The client's material, for its share x_c of what enters each layer and its mask r' of what leaves it."""
    relus, squares = _by_kind(layers)
    materials: list[Arrays] = []
    for party, group in ((relu_client(backend), relus), (SquareClient(), squares)):
        if group:
            own = [shares[layer.name].reshape(-1) for layer in group]
            leaving = [new_masks[layer.name].reshape(-1) for layer in group]
            materials += party.offline(channel, ots, group, own, leaving)  # type: ignore[arg-type]  # its own kind
    return _by_name(relus, squares, materials)


def run_server(channel: Channel, backend: Backend, layer: ReluLayer | SquareLayer, material: Arrays, x: Words) -> Words:
    """The server's share y - r' from its share of x."""
    if isinstance(layer, ReluLayer):
        return relu_server(backend).online(channel, layer, material, x)
    return SquareServer().online(channel, layer, material, x)


def run_client(
    channel: Channel, backend: Backend, layer: ReluLayer | SquareLayer, material: Arrays, x: Words, new_mask: Words
) -> None:
    if isinstance(layer, ReluLayer):
        relu_client(backend).online(channel, layer, material, x, new_mask)
    else:
        SquareClient().online(channel, layer, material, x, new_mask)


def _by_kind(layers: Layers) -> tuple[list[ReluLayer], list[SquareLayer]]:
    relus = [layer for layer in layers.values() if isinstance(layer, ReluLayer)]
    return relus, [layer for layer in layers.values() if isinstance(layer, SquareLayer)]


def _by_name(relus: list[ReluLayer], squares: list[SquareLayer], materials: list[Arrays]) -> dict[str, Arrays]:
    names = [layer.name for layer in relus] + [layer.name for layer in squares]
    return dict(zip(names, materials, strict=True))
