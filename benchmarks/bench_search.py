#!/usr/bin/env python3
"""Seconds per epoch of a cell search (each strategy) and of a placement search, eager and as CUDA graphs.

    PYTHONPATH=src python benchmarks/bench_search.py                      # the paper's sizes, CIFAR-100's shape
    PYTHONPATH=src python benchmarks/bench_search.py --strategies darts --steps 2 --warmup 1 --channels 1 --depth 3 \
        --batch 4 --location-depth 3

An epoch goes once over half of CIFAR-100's 50,000 training images; the images here are random. `--steps` are timed
after `--warmup` (which must see every placement once, where graphs are captured).
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import replace

import torch

from sphynx.network.backend import fast_convolutions
from sphynx.run.environment import device_name
from sphynx.search.cellspace import CellSpace
from sphynx.search.locate import candidate_networks
from sphynx.search.location import LocationRecipe, PlacementSearch, placements
from sphynx.search.recipe import SearchRecipe
from sphynx.search.search import Searcher
from sphynx.search.strategies import STRATEGIES, channel_divisor
from sphynx.search.supernet import Supernet
from sphynx.search.weights import SharedWeights
from sphynx.space.design import Design, default_reduce_positions
from sphynx.space.published import SPHYNX

HALF_IMAGES = 25_000


def seconds_per_step(step: Callable[[], object], device: torch.device, warmup: int, steps: int) -> float:
    for _ in range(warmup):
        step()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    started = time.perf_counter()
    for _ in range(steps):
        step()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return (time.perf_counter() - started) / steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--strategies", nargs="*", default=list(STRATEGIES), choices=list(STRATEGIES))
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--channels", type=int, default=5)
    parser.add_argument("--depth", type=int, default=8, help="of the supernet")
    parser.add_argument("--location-depth", type=int, default=5)
    parser.add_argument("--warmup", type=int, default=40)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    device = torch.device(options.device)
    torch.backends.cudnn.benchmark = device.type == "cuda"
    design = Design(SPHYNX, options.channels, options.depth, default_reduce_positions(options.depth))
    batch = (
        torch.randn(options.batch, *design.image, device=device),
        torch.randint(100, (options.batch,), device=device),
    )
    steps_per_epoch = HALF_IMAGES // options.batch
    rows = []

    def measure(what: str, how: str, step: Callable[[], object]) -> None:
        seconds = seconds_per_step(step, device, options.warmup, options.steps)
        rows.append({"what": what, "how": how, "step_seconds": seconds, "epoch_seconds": seconds * steps_per_epoch})
        if not options.json:
            print(
                f"{what:24} {how:12} {1000 * seconds:9.2f} ms/step {seconds * steps_per_epoch:9.2f} s/epoch", flush=True
            )

    modes = [("fp32", False, False)]
    if device.type == "cuda":
        modes += [("bf16", True, False), ("bf16, graph", True, True)]
    with fast_convolutions(device):
        for how, half, graphs in modes:
            for name in options.strategies:
                recipe = SearchRecipe(
                    epochs=1, batch_size=options.batch, pc_warmup=0.0, autocast=half, cuda_graphs=graphs
                )
                network = Supernet(design, CellSpace(7), channel_divisor=channel_divisor(name, recipe)).to(device)
                shared = SharedWeights(network, recipe)
                searcher = Searcher(STRATEGIES[name](shared, torch.Generator().manual_seed(0)), shared)
                searcher.start_epoch(0)
                measure(f"search {name}", how, lambda searcher=searcher: searcher.step(batch, batch))  # type: ignore[misc]
            location = LocationRecipe(epochs=1, batch_size=options.batch, autocast=half, cuda_graphs=graphs)
            places = placements(options.location_depth, 2, "paper")
            small = replace(design, depth=options.location_depth, reduce_positions=places[0])
            networks, stem = candidate_networks(small, places)
            networks.to(device)
            placing = PlacementSearch(
                list(networks), stem, location, steps=1000, generator=torch.Generator().manual_seed(0)
            )
            placing.start_epoch(0)
            measure(f"place {len(places)} candidates", how, lambda placing=placing: placing.step(batch, batch))  # type: ignore[misc]
    if options.json:
        print(json.dumps({"device": device_name(device), "batch": options.batch, "rows": rows}, indent=2))


if __name__ == "__main__":
    main()
