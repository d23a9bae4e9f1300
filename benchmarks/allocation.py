#!/usr/bin/env python3
"""Allocation searches against uniform and random allocations of as many ReLUs, each trained alike: a table's JSON.

    PYTHONPATH=src python -m benchmarks.allocation --data cifar100 --teacher runs/teacher --seconds 400 -o found.json

One start (`--stages`) gives the candidates of `sphynx search relus`; with `--prices`, which `sphynx estimate` makes
of its design, they cost as many seconds instead; then `--also` adds candidates of other depths, each by prices of its
own, which have its rounds and its stream in them, and of as many seconds in all. The Gumbel search, the gates and the
trainings of the controls run beside each other in `--at-once` processes of one device; what a search found is trained
as soon as it is known, and no training begins that would not end within `--seconds`. Searches and trainings learn from
the same views of a teacher, on nine tenths of the training images; searches learn their allocation from the held-out
tenth. So the held-out accuracy flatters what was searched, and the test accuracy, by which nothing was chosen, is kept
beside it.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import multiprocessing
import os
import sys
import tempfile
import time
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path
from statistics import mean
from typing import Any

import torch
from safetensors import safe_open

from sphynx.api.training import train_network
from sphynx.data.images import Data
from sphynx.data.open import open_data
from sphynx.design.taught import taught_job, taught_lessons
from sphynx.run.environment import describe_environment
from sphynx.run.progress import QUIET
from sphynx.run.work import Work, pick_device
from sphynx.search.allocation.allocate import AllocationResult, allocate, allocate_by_gates
from sphynx.search.allocation.candidates import Budget, allocations, latency_budget, relu_budget
from sphynx.search.placement.recipe import load_placement_recipe
from sphynx.space.files import load_any_design
from sphynx.space.prices import load_prices
from sphynx.space.stream import StreamDesign, stages_from_text
from sphynx.space.tally import Shape
from sphynx.train.loop import HELD_OUT_SEED, open_views
from sphynx.train.recipe import Recipe, load_recipe
from sphynx.train.views import views_identity

FORMAT = "sphynx-allocation-comparison/1"
METHODS = ("gates", "gumbel")
MULTIPLE = 8  # of channels: what tensor cores want
LAST_EPOCHS = 3  # whose held-out accuracy is averaged
PARTS_ELSEWHERE = 4  # of the grid of stage shares, for candidates of other depths
FIRST_GUESS = 60.0  # seconds of a training, before one has ended

_DATA: list[Data] = []  # of a worker process: opened once


def open_in_worker(data: str) -> None:
    _DATA.append(open_data(data))


def search(method: str, design: StreamDesign, settings: argparse.Namespace, training: Recipe) -> AllocationResult:
    [data] = _DATA
    device, out = pick_device(settings.device), settings.work / method
    budget = budget_of(design, settings)
    lessons = taught_lessons(
        taught_job(design, data, training, out, settings.views, None, Work(seed=0, device=device, voice=QUIET))
    )
    epochs = settings.gate_epochs if method == "gates" else settings.gumbel_epochs
    recipe = load_placement_recipe("taught", {"epochs": epochs, **json.loads(settings.search_set)})
    if method == "gates":
        return allocate_by_gates(
            design, data, recipe, budget, out, Work(device=device, voice=QUIET), factor=settings.factor, lessons=lessons
        )
    candidates = candidates_of(design, budget, settings)
    return allocate(candidates, data, recipe, budget, out, Work(device=device, voice=QUIET), lessons=lessons)


def train(name: str, design: StreamDesign, seed: int, settings: argparse.Namespace, training: Recipe) -> dict[str, Any]:
    [data] = _DATA
    out = settings.work / "trained" / f"{name}-{seed}".replace(" ", "-").replace(":", "-")
    found = train_network(
        design, data, out=out, recipe=training, seed=seed, views=settings.views, resume=True, device=settings.device
    ).runs[0]
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    held_out = mean(row["held_out_accuracy"] for row in rows[-LAST_EPOCHS:])
    return {
        "name": name,
        "stages": str(design),
        "relus": design.relus,
        "seed": seed,
        "held_out_accuracy": held_out,
        "test_accuracy": found.accuracy,
        "epochs": found.epochs,
        "minutes": found.minutes,
    }


def candidates_of(design: StreamDesign, budget: Budget, settings: argparse.Namespace) -> dict[str, StreamDesign]:
    found = allocations(design, budget, parts=settings.parts, randoms=settings.randoms, seed=0)
    for file in settings.also:
        prices = load_prices(file)
        stages, _ = stages_from_text(prices.stages, design.image)
        other = dataclasses.replace(design, stages=stages)
        own = latency_budget(other, load_prices(settings.prices).seconds(design), prices, MULTIPLE)
        few = allocations(other, own, parts=PARTS_ELSEWHERE, randoms=0, seed=0)
        found |= {f"{other.blocks} blocks, {name}": one for name, one in few.items()}
    return found


def budget_of(design: StreamDesign, settings: argparse.Namespace) -> Budget:
    """As many ReLUs as the start has, or as many seconds as it takes."""
    if settings.prices is None:
        return relu_budget(design, design.relus, MULTIPLE)
    prices = load_prices(settings.prices)
    prices.require_fit(design)
    return latency_budget(design, prices.seconds(design), prices, MULTIPLE)


def start_of(settings: argparse.Namespace, data: Data) -> StreamDesign:
    image = Shape(*data.image)
    stages, stem = stages_from_text(settings.stages, image)
    return StreamDesign(stages, image, data.classes, stem.stride, stem_kernel=stem.kernel)


def prepare_views(settings: argparse.Namespace, data: Data, training: Recipe) -> Recipe:
    """Takes the given views where they leave out the same images; else the teacher makes some. The recipe fits them."""
    if settings.views is not None and settings.views.is_file():
        with safe_open(settings.views, framework="pt") as opened:
            epochs, about = opened.get_slice("logits").get_shape()[0], opened.metadata() or {}
        fitting = dataclasses.replace(training, view_epochs=epochs)
        if about.get("views") == views_identity(data.identity(), fitting):
            return fitting
    settings.views = settings.work / "views.safetensors"
    device = pick_device(settings.device)
    job = taught_job(
        start_of(settings, data),
        data,
        training,
        settings.work,
        settings.views,
        settings.teacher,
        Work(seed=0, device=device, voice=QUIET),
    )
    open_views(job, data.train.split(training.held_out, HELD_OUT_SEED)[0])
    return training


class Comparison:
    """The work that is waiting, running and done; the JSON is written after everything that ends."""

    def __init__(self, settings: argparse.Namespace, design: StreamDesign, training: Recipe, started: float) -> None:
        self.settings, self.design, self.training, self.started = settings, design, training, started
        self.deadline = started + settings.seconds
        self.prices = None if settings.prices is None else load_prices(settings.prices)
        budget = budget_of(design, settings)
        made = candidates_of(design, budget, settings)
        controls = [name for name in made if name in ("given", "uniform") or name.startswith("random")]
        self.designs = {name: made[name] for name in controls}
        self.candidates = made
        self.searches: list[dict[str, Any]] = []
        self.trainings: list[dict[str, Any]] = []
        self.longest = 0.0
        self.waiting = [(seed, name) for seed in range(settings.seeds) for name in controls]
        self.left_out: list[str] = []

    def found(self, method: str, result: AllocationResult) -> None:
        self.searches.append(result.to_json())
        if method == "gumbel":
            best = self.candidates[result.best.name]
        else:
            kept = load_any_design(self.settings.work / method / "design.json")
            assert isinstance(kept, StreamDesign)
            best = kept
        if best not in self.designs.values():
            self.designs[method] = best
            self.waiting += [(seed, method) for seed in range(self.settings.seeds)]
            controls = [name for name in self.designs if name not in METHODS]
            self.waiting.sort(key=lambda one: (one[0], one[1] in controls))  # seed by seed, searched ones first

    def ended(self, method: str, result: Any, seconds: float) -> str:
        if method:
            self.found(method, result)
            return f"{method} found {result.best.stages}"
        self.trainings.append(result)
        self.longest = max(self.longest, seconds)
        return str(result)

    def next(self) -> tuple[int, str] | None:
        needed = 1.1 * (self.longest or FIRST_GUESS)
        if self.waiting and time.monotonic() + needed > self.deadline:
            self.left_out += [f"{name}, seed {seed}" for seed, name in self.waiting]
            self.waiting = []
        return self.waiting.pop(0) if self.waiting else None

    def write(self) -> None:
        described = {
            "format": FORMAT,
            "start": str(self.design),
            "borders": self.design.borders,
            "relus": self.design.relus,
            "recipe": self.training.to_json(),
            **({"prices": self.prices.to_json()} if self.prices is not None else {}),
            **({"also": [load_prices(file).to_json() for file in self.settings.also]} if self.settings.also else {}),
            "search_settings": json.loads(self.settings.search_set),
            "searches": self.searches,
            "trainings": self.trainings,
            "left_out": self.left_out,
            "at_once": self.settings.at_once,
            "minutes": round((time.monotonic() - self.started) / 60, 3),
            "environment": describe_environment(pick_device(self.settings.device)),
        }
        part = self.settings.out.with_name(self.settings.out.name + ".new")
        part.write_text(json.dumps(described, indent=1) + "\n")
        part.replace(self.settings.out)


def compare(settings: argparse.Namespace) -> None:
    started = time.monotonic()
    data = open_data(settings.data)
    training = load_recipe(
        "frontier",
        {"epochs": settings.epochs, "view_epochs": settings.view_epochs, "held_out": 0.1, **json.loads(settings.set)},
    )
    training = prepare_views(settings, data, training)
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    design = start_of(settings, data)
    comparison = Comparison(settings, design, training, started)
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(settings.at_once, context, open_in_worker, (settings.data,))
    running: dict[Future[Any], tuple[str, float]] = {}
    for method in METHODS:
        running[pool.submit(search, method, design, settings, training)] = (method, 0.0)
    while running or comparison.waiting:
        while len(running) < settings.at_once and (chosen := comparison.next()) is not None:
            seed, name = chosen
            begun = pool.submit(train, name, comparison.designs[name], seed, settings, training)
            running[begun] = ("", time.monotonic())
        done, _ = wait(running, max(0.0, comparison.deadline - time.monotonic()), FIRST_COMPLETED)
        for job in done:
            method, began = running.pop(job)
            try:
                what = comparison.ended(method, job.result(), time.monotonic() - began)
            except Exception as error:  # the others go on without it
                what = f"{method or 'a training'} failed: {error}"
                comparison.left_out.append(what)
            comparison.write()
            say(f"{time.monotonic() - started:.0f} s: {what}")
        if not done:
            comparison.left_out += [method or "a training" for method, _ in running.values()]
            break
    comparison.write()
    if running:  # the time is up: these would go on
        for process in multiprocessing.active_children():
            process.kill()
        os._exit(0 if comparison.trainings else 1)
    pool.shutdown()


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--teacher", required=True, help="a trained run: it makes views where --views do not fit")
    parser.add_argument("--views", type=Path, help="views of nine tenths of the images")
    parser.add_argument("--stages", default="16:64:12 8:128:56x3 4:256:256x2,216")
    parser.add_argument("--prices", type=Path, help="of the start's channels: allocations of its seconds, not ReLUs")
    parser.add_argument("--also", type=Path, action="append", default=[], help="prices of a design of another depth")
    parser.add_argument("--seconds", type=float, default=400)
    parser.add_argument("--epochs", type=int, default=40, help="of each training")
    parser.add_argument("--view-epochs", type=int, default=20)
    parser.add_argument("--gate-epochs", type=int, default=40)
    parser.add_argument("--gumbel-epochs", type=int, default=80)
    parser.add_argument("--factor", type=float, default=2.0)
    parser.add_argument("--parts", type=int, default=5)
    parser.add_argument("--randoms", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--at-once", type=int, default=3)
    parser.add_argument("--set", default="{}", help="other settings of the training recipe, as JSON")
    parser.add_argument("--search-set", default="{}", help="other settings of the searches' recipe, as JSON")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--work", type=Path, help="where runs and views go [default: a temporary folder]")
    parser.add_argument("-o", "--out", type=Path, required=True)
    settings = parser.parse_args()
    if settings.also and settings.prices is None:
        parser.error("--also needs --prices, which say how many seconds all candidates take")
    settings.out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        settings.work = settings.work or Path(folder)
        settings.work.mkdir(parents=True, exist_ok=True)
        compare(settings)


if __name__ == "__main__":
    main()
