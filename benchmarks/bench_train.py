#!/usr/bin/env python3
"""Seconds per epoch of everything the design wing does on one device, each beside the machine's floor (`measure`).

    PYTHONPATH=src python -m benchmarks.bench_train                        # a GPU: 25.6K ReLUs, ResNet18, search, place
    PYTHONPATH=src python -m benchmarks.bench_train --only train --json
    PYTHONPATH=src python -m benchmarks.bench_train --quick                # tiny, on any device: does everything run?

The images are random, of CIFAR-100's shape and number (50,000 per epoch; a search epoch goes over two halves of them).
A row times windows of steps for about two seconds, or one epoch where that is shorter, and scales them to an epoch. It
includes drawing and augmenting the batches. Floors count the networks as designed, without rounded widths.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from benchmarks import measure
from benchmarks.bench_search import paper_design, search_rows, settings_of
from sphynx.data.images import Data
from sphynx.run.work import pick_device
from sphynx.space.files import AnyDesign
from sphynx.space.reference import ResNet18Design
from sphynx.space.tally import Shape
from sphynx.train.job import Job
from sphynx.train.loop import make_batches, prepare_training
from sphynx.train.processes import Processes
from sphynx.train.recipe import load_recipe

SEARCHES = ["darts", "pc-darts", "gdas"]


def training_row(
    what: str,
    design: AnyDesign,
    data: Data,
    overrides: dict[str, Any],
    device: torch.device,
    effort: measure.Effort,
    ceilings: measure.Ceilings,
) -> dict[str, Any]:
    recipe = load_recipe("paper-cifar100", overrides)
    job = Job(design, data, recipe, Path(), processes=Processes(device))
    batches = make_batches(data.train, job)
    turns = endless(batches)
    eager = dataclasses.replace(job, recipe=dataclasses.replace(recipe, acceleration="eager"))
    _, counted = prepare_training(eager, multiple=1)
    work = measure.count_work(lambda: counted(*next(turns)))
    network, step = prepare_training(job)
    network.train()
    seconds = measure.seconds_per_step(lambda: step(*next(turns)), device, effort, len(batches))
    return measure.row_of(what, recipe.acceleration, recipe.batch_size, seconds, len(batches), work, ceilings)


def endless(batches: Any) -> Iterator[Any]:
    while True:
        yield from batches


def training_rows(
    batch_sizes: list[int], overrides: dict[str, Any], device: torch.device, ceilings: measure.Ceilings, *, quick: bool
) -> Iterator[dict[str, Any]]:
    data = measure.random_data(256 if quick else 50_000)
    channels, depth, width = (1, 3, 8) if quick else (5, 5, 64)
    designs: dict[str, AnyDesign] = {
        f"sphynx C={channels} D={depth} {stack}": paper_design(channels, depth, data.classes, conv_stack=stack)
        for stack in ("single", "paper")
    }
    designs[f"resnet18 w{width}"] = ResNet18Design(width, Shape(*data.train.shape), data.classes, "small")
    effort = measure.QUICK_EFFORT if quick else measure.GPU_EFFORT
    for batch in batch_sizes:
        for what, design in designs.items():
            settings = {**overrides, "batch_size": batch}
            yield training_row(f"train {what}", design, data, settings, device, effort, ceilings)


def main() -> None:
    parser = measure.argument_parser(__doc__)
    parser.add_argument("--only", choices=["train", "search"], help="leave the other part out")
    parser.add_argument("--batch", type=int, nargs="+", help="of the training rows (default: 96 512)")
    parser.add_argument("--strategies", nargs="*", default=SEARCHES, help=f"default: {' '.join(SEARCHES)}")
    parser.add_argument("--acceleration", default="auto", help="training: auto, eager, graph, compile")
    parser.add_argument("--precision", default="auto", help="training: auto, fp32, bf16")
    parser.add_argument("--memory-format", default="auto", help="training: auto, contiguous, channels_last")
    a = parser.parse_args()
    device = pick_device(a.device)
    ceilings = measure.ceilings_of(device)
    overrides = {"acceleration": a.acceleration, "precision": a.precision, "memory_format": a.memory_format}
    batch_sizes = a.batch or ([8, 16] if a.quick else [96, 512])
    parts: list[Iterator[dict[str, Any]]] = []
    if a.only != "search":
        parts.append(training_rows(batch_sizes, overrides, device, ceilings, quick=a.quick))
    if a.only != "train":
        parts.append(search_rows(a.strategies, "paper", device, ceilings, settings_of(a), quick=a.quick))
    rows = []
    started = time.perf_counter()
    for part in parts:
        for row in part:
            rows.append(row)
            passed = time.perf_counter() - started
            print(f"{passed:6.1f} s  {row['what']}: {row['epoch_seconds']:.3g} s/epoch", file=sys.stderr, flush=True)
    measure.print_rows(rows, ceilings, device, a.json)


if __name__ == "__main__":
    main()
