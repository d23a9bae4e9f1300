"""Runs a network of odd widths on hardware that wants multiples of 8, without changing what it computes or learns.

`widened` embeds a network in one whose widths are rounded up, all new weights zero. A new channel is then always zero,
and nothing reads it with a weight other than zero; so every gradient to and from it is zero, and stays so under SGD
or Adam with weight decay. Training the wide network trains the narrow one, step by step; `narrowed` takes it out again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor, nn

from sphynx.network.builder import SphynxNetwork


def widened(network: SphynxNetwork, multiple: int) -> SphynxNetwork:
    if multiple == network.channel_multiple:
        return network
    wide = _like(network, multiple)
    embed(wide, _pairs(network, wide))
    return wide


@torch.no_grad()
def embed(wide: nn.Module, pairs: Iterable[tuple[Tensor, Tensor]]) -> None:
    """Copy pairs of (narrow tensor, the part of the wide one's that holds it); set all other weights to zero."""
    for parameter in wide.parameters():
        parameter.zero_()
    for part, whole in pairs:
        whole.copy_(part)


def narrowed(wide: SphynxNetwork) -> SphynxNetwork:
    if wide.channel_multiple == 1:
        return wide
    network = _like(wide, 1)
    with torch.no_grad():
        for part, whole in _pairs(network, wide):
            part.copy_(whole)
    return network


def _like(network: SphynxNetwork, multiple: int) -> SphynxNetwork:
    made = SphynxNetwork(
        network.design,
        auxiliary=network.auxiliary is not None,
        drop_path=network.drops_paths,
        channel_multiple=multiple,
    )
    parameter = next(network.parameters())
    made.to(parameter.device, parameter.dtype)
    made.drop_path.copy_(network.drop_path)
    return made.train(network.training)


def _pairs(narrow: SphynxNetwork, wide: SphynxNetwork) -> Iterator[tuple[Tensor, Tensor]]:
    """Pair each tensor of the narrow network with the part of the wide one's that holds it."""
    held = wide.state_dict(keep_vars=True)
    nodes = len(narrow.design.genotype.normal)
    for name, part in narrow.state_dict(keep_vars=True).items():
        whole = held[name]
        if name.endswith(".output.0.weight"):  # it reads the joined nodes, each of them padded
            yield (
                part.unflatten(1, (nodes, -1)),
                corner(whole.unflatten(1, (nodes, -1)), part.unflatten(1, (nodes, -1))),
            )
        else:
            yield part, corner(whole, part)


def corner(whole: Tensor, part: Tensor) -> Tensor:
    return whole[tuple(slice(length) for length in part.shape)]
