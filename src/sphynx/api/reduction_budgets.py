"""The ReLUs that a reduced network may have for a latency, by estimates of networks like it on this machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sphynx.errors import InputError
from sphynx.network.reduced import ReducedNetwork, describe_layers, rectified_layers
from sphynx.network.trained import TrainedNetwork
from sphynx.reduce.methods.stream import nearest_stream
from sphynx.reduce.settings import Backend, Method
from sphynx.space.files import AnyDesign
from sphynx.space.reduced import IDENTITY, RELU, SQUARE, ReducedDesign
from sphynx.units import seconds_text

if TYPE_CHECKING:
    from sphynx.program.cost.link import Link
    from sphynx.program.cost.rates import Rates

HALVINGS = 8
LEAST_SHARE = 1 / 256  # of the ReLUs
OF_SQUARES: tuple[Method, ...] = ("delphi", "safenet", "autorep")


def relus_within(
    trained: TrainedNetwork, method: Method, online_seconds: float, link: Link, backend: Backend, rates: Rates
) -> int:
    """The most ReLUs with which a network of the method's kind is estimated to answer in time: a stream of that
    many, or the original with the same share of each layer's channels left."""
    from sphynx.compiler.latency import design_estimate

    like = _stream(trained) if method == "stream" else _thinned(trained, SQUARE if method in OF_SQUARES else IDENTITY)

    def fits(share: float) -> bool:
        return design_estimate(like(share), rates, link, backend).total.online_seconds <= online_seconds

    if not fits(LEAST_SHARE):
        raise InputError(
            "even with a few ReLUs, the network is estimated to take longer than "
            f"{seconds_text(online_seconds)} online over {link.name}",
            where="`latency_budget`",
            remedy="Allow more time, name a faster link, or use the method stream.",
        )
    low, high = LEAST_SHARE, 1.0
    for _ in range(HALVINGS):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if fits(middle) else (low, middle)
    return like(low).relus


def _stream(trained: TrainedNetwork) -> Callable[[float], AnyDesign]:
    relus, design = trained.design.relus, trained.design
    return lambda share: nearest_stream(max(1, round(share * relus)), design.image, design.classes)


def _thinned(trained: TrainedNetwork, otherwise: str) -> Callable[[float], AnyDesign]:
    network = trained.module
    base = network.design
    if isinstance(network, ReducedNetwork) or isinstance(base, ReducedDesign):
        raise InputError(
            "it is a reduced network already",
            where=trained.name,
            remedy="Reduce the original, or use the method stream.",
        )
    layers = rectified_layers(network, base.image)

    def thinned(share: float) -> ReducedDesign:
        kept = {name: max(1, round(share * shape.channels)) for name, shape in layers.items()}
        kinds = {name: RELU * n + otherwise * (layers[name].channels - n) for name, n in kept.items()}
        return ReducedDesign(base, describe_layers(layers, kinds), "thinned")

    return thinned
