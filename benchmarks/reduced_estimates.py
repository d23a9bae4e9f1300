"""Estimates of one ResNet18 at one number of ReLUs, as the methods of `sphynx reduce` leave it: from shapes alone.

    python -m benchmarks.reduced_estimates --relu-budget 50000

Which ReLUs stay is drawn or spread evenly: costs depend on how many values of each kind a layer has, hardly on which.
Rates are the reference machine's, so that the table is the same everywhere.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Mapping

from sphynx.compiler.latency import design_estimate
from sphynx.network.build import build_network
from sphynx.network.reduced import describe_layers, rectified_layers
from sphynx.program.backends import BACKENDS
from sphynx.program.cost.link import LINKS
from sphynx.program.cost.rates import REFERENCE
from sphynx.reduce.methods.cryptonas import random_networks
from sphynx.reduce.methods.deepreduce import layers_within, stages_of
from sphynx.reduce.methods.stream import nearest_stream
from sphynx.space.files import AnyDesign
from sphynx.space.reduced import IDENTITY, RELU, REMOVED, SQUARE, ReducedDesign
from sphynx.space.reference import ResNet18Design
from sphynx.space.tally import Shape

ORIGINAL = ResNet18Design(64, Shape(3, 32, 32), 100, "small")
CRITICALITY = [0.1, 0.2, 0.3, 0.25]  # of the stages: an order such as deepreduce finds


def networks(relu_budget: int) -> Iterator[tuple[str, AnyDesign]]:
    layers = rectified_layers(build_network(ORIGINAL), ORIGINAL.image)
    share = relu_budget / ORIGINAL.relus

    def reduced(kinds: Mapping[str, str]) -> ReducedDesign:
        return ReducedDesign(ORIGINAL, describe_layers(layers, kinds))

    def spread(otherwise: str) -> ReducedDesign:
        kept = {name: round(share * shape.channels) for name, shape in layers.items()}
        return reduced({name: RELU * n + otherwise * (layers[name].channels - n) for name, n in kept.items()})

    def drawn(otherwise: str) -> ReducedDesign:
        letters = random.Random(0)
        weights = (share, 1 - share)
        kinds = {n: "".join(letters.choices((RELU, otherwise), weights, k=s.size)) for n, s in layers.items()}
        return reduced(kinds)

    whole = layers_within(layers, stages_of(layers), CRITICALITY, relu_budget)

    def by_layers(otherwise: str) -> ReducedDesign:
        return reduced({n: (RELU if n in whole else otherwise) * shape.channels for n, shape in layers.items()})

    yield "the original", ORIGINAL
    yield "stream", nearest_stream(relu_budget, ORIGINAL.image, ORIGINAL.classes)
    yield "channels, the others removed", spread(REMOVED)
    yield "channels, the others identities", spread(IDENTITY)
    yield "snl, senet: values", drawn(IDENTITY)
    yield "deepreduce: layers", by_layers(IDENTITY)
    yield "cryptonas", random_networks(relu_budget, ORIGINAL.image, ORIGINAL.classes, 1, 0)[0]
    yield "delphi: layers, squares", by_layers(SQUARE)
    yield "safenet: channels, squares", spread(SQUARE)
    yield "autorep: values, squares", drawn(SQUARE)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reduced_estimates")
    parser.add_argument("--relu-budget", type=int, default=50_000)
    parser.add_argument("--link", default="lan", choices=LINKS)
    options = parser.parse_args()
    print("| network | ReLUs | squares | truncations | offline, s | online, ms | offline, MB | online, MB |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for name, design in networks(options.relu_budget):
        found = [design_estimate(design, REFERENCE, LINKS[options.link], backend).total for backend in BACKENDS]
        counts = design.counts if isinstance(design, ReducedDesign) else None
        beside = "0 | 0" if counts is None else f"{counts.squares:,} | {counts.truncations:,}"
        amounts = (
            " / ".join(f"{one.offline_seconds:.1f}" for one in found),
            " / ".join(f"{1e3 * one.online_seconds:.0f}" for one in found),
            " / ".join(f"{one.offline_bytes / 1e6:.0f}" for one in found),
            " / ".join(f"{one.online_bytes / 1e6:.1f}" for one in found),
        )
        print(f"| {name} | {design.relus:,} | {beside} | {' | '.join(amounts)} |", flush=True)


if __name__ == "__main__":
    main()
