#!/usr/bin/env python3
"""Seconds per epoch of a cell search (each strategy) and of a placement search, each beside its floor.

    PYTHONPATH=src python -m benchmarks.bench_search                       # the paper's sizes, CIFAR-100's shape
    PYTHONPATH=src python -m benchmarks.bench_search --quick               # tiny: does everything run?
    PYTHONPATH=src python -m benchmarks.bench_search --check-graphs        # on a GPU: captured steps == eager steps

An epoch goes once over both halves of CIFAR-100's 50,000 training images; the images here are random. On a GPU the
steps run in bf16, captured as CUDA graphs where the strategy allows it. The floor (`measure`) counts the networks
as designed, without widths that are rounded up for the hardware.

`--check-graphs` runs the same few steps of search, placement and training twice from the same state, eagerly and
captured (cell searches over several streams, unless `--no-lanes`), in fp32 with deterministic kernels, and prints the
largest difference of any weight, architecture parameter or loss; it exits with 1 where that exceeds what the order of
additions explains.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from benchmarks import measure
from sphynx.cli.output import print_json, print_table
from sphynx.data.images import Data
from sphynx.network.backend import fast_convolutions
from sphynx.run.work import pick_device
from sphynx.search.epochs import Halves, Learner
from sphynx.search.placement.candidates import placements
from sphynx.search.placement.place import prepare_placement
from sphynx.search.placement.recipe import PlacementRecipe, load_placement_recipe
from sphynx.search.recipe import SearchRecipe, load_recipe
from sphynx.search.search import prepare_search
from sphynx.search.strategies import STRATEGIES
from sphynx.space.design import Design
from sphynx.space.published_cells import SPHYNX
from sphynx.space.tally import Shape
from sphynx.train.job import Job
from sphynx.train.loop import make_batches, prepare_training
from sphynx.train.processes import Processes
from sphynx.train.recipe import load_recipe as load_training_recipe

CAPTURED = ("darts", "darts-2nd", "pc-darts", "gaea")  # they compute everything in every step: one graph serves
SAMPLED_STEPS = 6  # that a floor is averaged over, where steps draw what they compute
TOLERANCE = 1e-4  # of --check-graphs, relative to the largest magnitude


def on_this_device(recipe: Any, device: torch.device, graphs: bool) -> Any:
    recipe = recipe.resolved(device)
    return dataclasses.replace(recipe, cuda_graphs=recipe.cuda_graphs and graphs)


def endless(halves: Halves) -> Iterator[Any]:
    epoch = 0
    while True:
        yield from halves.pairs(epoch)
        epoch += 1


def seconds_and_work(
    learner: Learner[Any], eager: Learner[Any], halves: Halves, effort: measure.Effort, counted: int
) -> Any:
    """`eager` is the same without graphs, whose operators can be counted."""
    turns = endless(halves)
    with fast_convolutions(halves.device):
        eager.start_epoch(0)
        work = measure.count_work(lambda: eager.step(*next(turns)), counted)
        learner.start_epoch(0)
        seconds = measure.seconds_per_step(lambda: learner.step(*next(turns)), halves.device, effort, halves.steps)
    return seconds, work


def search_row(
    strategy: str,
    data: Data,
    recipe: SearchRecipe,
    device: torch.device,
    effort: measure.Effort,
    ceilings: measure.Ceilings,
) -> dict[str, Any]:
    # pc_warmup = 0: time the steps that also learn the architecture, which are the longer ones.
    recipe = dataclasses.replace(on_this_device(recipe, device, strategy in CAPTURED), pc_warmup=0.0)
    searcher, halves, _ = prepare_search(data, strategy, recipe, seed=0, device=device)
    eager = dataclasses.replace(recipe, cuda_graphs=False, tensor_cores=False)
    counted = 1 if strategy in CAPTURED else SAMPLED_STEPS
    other, _, _ = prepare_search(data, strategy, eager, seed=0, device=device)
    seconds, work = seconds_and_work(searcher, other, halves, effort, counted)
    what = f"search {strategy}, C={recipe.channels} D={recipe.depth}"
    return measure.row_of(what, _how(recipe), recipe.batch_size, seconds, halves.steps, work, ceilings)


def placement_row(
    design: Design,
    data: Data,
    recipe: PlacementRecipe,
    device: torch.device,
    effort: measure.Effort,
    ceilings: measure.Ceilings,
) -> dict[str, Any]:
    recipe = on_this_device(recipe, device, graphs=True)
    places = placements(design.depth, len(design.reduce_positions), "paper")
    search, halves, _ = prepare_placement(design, data, recipe, places, seed=0, device=device)
    eager = dataclasses.replace(recipe, cuda_graphs=False, tensor_cores=False)
    other, _, _ = prepare_placement(design, data, eager, places, seed=0, device=device)
    if recipe.cuda_graphs:  # the warm-up must capture the two steps of (nearly) every candidate
        effort = dataclasses.replace(effort, warmup=max(effort.warmup, 6 * len(places)))
    seconds, work = seconds_and_work(search, other, halves, effort, SAMPLED_STEPS)
    what = f"place {len(places)} candidates, C={design.channels} D={design.depth}"
    return measure.row_of(what, _how(recipe), recipe.batch_size, seconds, halves.steps, work, ceilings)


def _how(recipe: SearchRecipe | PlacementRecipe) -> str:
    how = ("bf16" if recipe.autocast else "fp32") + (", graph" if recipe.cuda_graphs else ", eager")
    how += ", lanes" if recipe.cuda_graphs and isinstance(recipe, SearchRecipe) and recipe.lanes else ""
    return how + (", tensor cores" if recipe.tensor_cores else "")


def state_tensors(state: Any, path: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(state, torch.Tensor):
        yield path, state.detach().double().cpu()
    elif isinstance(state, dict):
        for key, value in state.items():
            yield from state_tensors(value, f"{path}/{key}")
    elif isinstance(state, list | tuple):
        for number, value in enumerate(state):
            yield from state_tensors(value, f"{path}/{number}")


def graph_difference(make: Any, steps: int) -> tuple[float, str]:
    """Compare learners made twice, without and with graphs: the largest difference after `steps`, and where it is."""
    ends = []
    for graphs in (False, True):
        learner, halves, _ = make(graphs)
        learner.start_epoch(0)
        losses = [float(learner.step(*pair)) for pair in islice(endless(halves), steps)]
        ends.append(dict(state_tensors({"state": learner.state_dict(), "loss": torch.tensor(losses)})))
    return largest_difference(*ends)


def training_difference(design: Design, data: Data, steps: int, device: torch.device) -> tuple[float, str]:
    """The same of training steps."""
    ends = []
    for acceleration in ("eager", "graph"):
        recipe = load_training_recipe("fast", {"precision": "fp32", "acceleration": acceleration, "batch_size": 64})
        job = Job(design, data, recipe, Path(), processes=Processes(device))
        network, step = prepare_training(job)
        network.train()
        torch.backends.cudnn.benchmark = False  # training turns it on; timings would choose other kernels each time
        for batch in islice(make_batches(data.train, job), steps):
            step(*batch)
        ends.append(dict(state_tensors({"network": network.state_dict(), "loss": torch.tensor(step.read()[0])})))
    return largest_difference(*ends)


def largest_difference(eager: dict[str, torch.Tensor], captured: dict[str, torch.Tensor]) -> tuple[float, str]:
    """Relative to each tensor's largest magnitude (at least 1), and where it is."""
    if eager.keys() != captured.keys():
        return float("inf"), ", ".join(sorted(eager.keys() ^ captured.keys())[:3])
    worst, where = 0.0, "-"
    for name, value in eager.items():
        scale = max(float(value.abs().max()) if value.numel() else 0.0, 1.0)
        difference = float((value - captured[name]).abs().max()) / scale if value.numel() else 0.0
        if not difference <= worst:  # a NaN counts as the worst
            worst, where = difference, name
    return worst, where


def check_graphs(
    data: Data, design: Design, steps: int, device: torch.device, settings: dict[str, bool], as_json: bool
) -> bool:
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS is deterministic only with it
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cudnn.benchmark = torch.backends.cudnn.allow_tf32 = False
    found = {}
    for strategy in CAPTURED:
        recipe = load_recipe(
            "paper",
            {"depth": design.depth, "batch_size": 16, "pc_warmup": 0.0, "epochs": 2, "autocast": False, **settings},
        )

        def make_search(graphs: bool, strategy: str = strategy, recipe: SearchRecipe = recipe) -> Any:
            captured = dataclasses.replace(recipe, cuda_graphs=graphs)
            return prepare_search(data, strategy, captured, seed=0, device=device)

        found[f"search {strategy}"] = graph_difference(make_search, steps)

    def make_placement(graphs: bool) -> Any:
        recipe = load_placement_recipe(
            "paper", {"batch_size": 16, "autocast": False, "cuda_graphs": graphs, **of_both(settings)}
        )
        return prepare_placement(design, data, recipe, placements(design.depth, 2, "paper"), seed=0, device=device)

    found["placement"] = graph_difference(make_placement, 3 * steps)
    found["training"] = training_difference(design, data, steps, device)
    good = {what: difference <= TOLERANCE for what, (difference, _) in found.items()}
    if as_json:
        print_json({what: {"difference": d, "where": w, "good": good[what]} for what, (d, w) in found.items()})
    else:
        print_table(
            f"Captured against eager steps, fp32, {device}",
            ["what", ">largest difference", "where", "verdict"],
            ([what, f"{d:.2e}", w, "good" if good[what] else "DIFFERS"] for what, (d, w) in found.items()),
            note=f"relative to each tensor's largest magnitude (at least 1); allowed: {TOLERANCE:g}",
        )
    return all(good.values())


def main() -> None:
    parser = measure.argument_parser(__doc__)
    parser.add_argument("--strategies", nargs="*", default=list(STRATEGIES), choices=list(STRATEGIES))
    parser.add_argument("--recipe", default="paper", help="of search and placement: a name")
    parser.add_argument("--check-graphs", action="store_true", help="compare captured with eager steps; needs a GPU")
    options = parser.parse_args()
    device = pick_device(options.device)
    if options.check_graphs:
        if device.type != "cuda":
            sys.exit("error: CUDA graphs need a GPU\n  remedy: run this on a machine with one.")
        design = paper_design(5, 5, 100)
        same = check_graphs(measure.random_data(2000), design, 8, device, settings_of(options), options.json)
        sys.exit(0 if same else 1)
    ceilings = measure.ceilings_of(device)
    settings = settings_of(options)
    rows = list(search_rows(options.strategies, options.recipe, device, ceilings, settings, quick=options.quick))
    measure.print_rows(rows, ceilings, device, options.json)


def settings_of(options: argparse.Namespace) -> dict[str, bool]:
    """Settings of a cell search."""
    asked = {"tensor_cores": options.tensor_cores, "lanes": options.lanes}
    return {name: value for name, value in asked.items() if value is not None}


def of_both(settings: dict[str, bool]) -> dict[str, bool]:
    """Keep the settings that a placement search has too."""
    return {name: value for name, value in settings.items() if name != "lanes"}


def search_rows(
    strategies: list[str],
    recipe_name: str,
    device: torch.device,
    ceilings: measure.Ceilings,
    settings: dict[str, bool],
    *,
    quick: bool,
) -> Iterator[dict[str, Any]]:
    effort = measure.QUICK_EFFORT if quick else measure.GPU_EFFORT
    data = measure.random_data(256 if quick else 50_000)
    small = {"batch_size": 8} if quick else {}
    recipe = load_recipe(recipe_name, {**settings, **small, **({"depth": 3, "channels": 1} if quick else {})})
    placing = load_placement_recipe(recipe_name, {**of_both(settings), **small})
    for strategy in strategies:
        yield search_row(strategy, data, recipe, device, effort, ceilings)
    channels, depth = (1, 3) if quick else (5, 5)
    yield placement_row(paper_design(channels, depth, data.classes), data, placing, device, effort, ceilings)


def paper_design(channels: int, depth: int, classes: int, **changes: Any) -> Design:
    """The published cells, the paper's stacks; reduce cells at 0 and 1, as in its 25.6K network (C = D = 5)."""
    return Design(SPHYNX, channels, depth, (0, 1), Shape(3, 32, 32), classes, **{"conv_stack": "paper", **changes})


if __name__ == "__main__":
    main()
