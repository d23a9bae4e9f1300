"""Searches an allocation of ReLUs on a data set, within a budget; the new design and what was found as files.

    gumbel   one network per candidate allocation, sampled by a distribution that is learned (Algorithm 1's machinery)
    gates    one network with too many channels, and a learned gate for each

out/design.json      the allocation that was found
out/allocation.json  all candidates with their probability and held-out accuracy (gumbel), or the one that gates kept
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from sphynx.data.images import Data
from sphynx.network.backend import fast_convolutions
from sphynx.network.fit import require_fit
from sphynx.network.layout import lay_out
from sphynx.network.stream import StreamNetwork
from sphynx.record import Record, fingerprint
from sphynx.run.folder import RunFolder
from sphynx.run.sweep import IN_TURN, Sweep
from sphynx.run.work import HERE, Work
from sphynx.search.allocation.candidates import Budget, all_channels, with_channels
from sphynx.search.allocation.gates import GateSearch
from sphynx.search.epochs import Halves, Pairs, Watch, run_epochs
from sphynx.search.objective import TaughtLoss
from sphynx.search.placement.algorithm import PlacementSearch
from sphynx.search.placement.candidate_run import held_out_accuracy, run_candidates
from sphynx.search.placement.recipe import PlacementRecipe
from sphynx.search.weight_steps import memory_format
from sphynx.space.stream import StreamDesign

Method = Literal["gumbel", "gates"]
FORMAT, FILE = "sphynx-allocation/1", "allocation.json"


@dataclass(frozen=True)
class Lessons:
    """The images that weights learn from, and the loss. Without a teacher: one half of the images, by their labels."""

    images: Pairs[tuple[Tensor, ...]]
    loss: TaughtLoss = functional.cross_entropy
    identity: Mapping[str, Any] = field(default_factory=dict)  # of the teacher's part


@dataclass(frozen=True)
class Allocation(Record):
    name: str
    stages: str
    relus: int
    probability: float
    held_out_accuracy: float  # with the weights it has after the search; of gates: of the gated network
    accuracy: float | None = None  # trained by itself, on held-out images


@dataclass(frozen=True)
class AllocationResult(Record):
    """The allocations of ReLUs that were tried, and how likely each was to the search at its end.

    >>> found = sphynx.allocate_relus("stream.json", "cifar100", out="runs/allocated")  # doctest: +SKIP
    >>> found.best.stages, found.best.relus  # doctest: +SKIP
    """

    method: str
    budget: float
    unit: str  # of the budget: ReLUs, or seconds online
    allocations: tuple[Allocation, ...]
    minutes: float

    @property
    def best(self) -> Allocation:
        return max(self.allocations, key=lambda one: one.probability)

    def to_json(self) -> dict[str, Any]:
        return {"format": FORMAT, "best": self.best.name, **super().to_json()}


def allocate(
    candidates: Mapping[str, StreamDesign],
    data: Data,
    recipe: PlacementRecipe,
    budget: Budget,
    out: Path,
    work: Work = HERE,
    *,
    lessons: Lessons | None = None,
) -> AllocationResult:
    """Which of the candidates, by Algorithm 1; or continues the search in `out`."""
    seed, device = work.seed, work.device
    recipe, designs = recipe.resolved(device), list(candidates.values())
    lessons = lessons or _halves(data, recipe, seed, device)
    folder, config = _open(out, data, recipe, budget, seed, "gumbel", designs, lessons)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        networks = nn.ModuleList(StreamNetwork(design) for design in designs)
    stem = networks[0].stem
    assert isinstance(stem, nn.Module)
    for network in networks:
        network.stem = stem
    networks.to(device)
    lay_out(networks, memory_format(recipe))
    halves, generator = lessons.images, torch.Generator().manual_seed(seed)
    search = PlacementSearch(
        list(networks), stem, recipe, steps=recipe.epochs * halves.steps, generator=generator, loss=lessons.loss
    )
    beta_hat, accuracies, minutes = run_candidates(
        search, halves, generator, folder, config, list(candidates), epochs=recipe.epochs, voice=work.voice
    )
    rows = zip(candidates.items(), beta_hat[-1], accuracies, strict=True)
    found = tuple(
        Allocation(name, str(design), design.relus, beta, accuracy) for (name, design), beta, accuracy in rows
    )
    result = AllocationResult("gumbel", budget.total, budget.unit, found, minutes)
    _write(folder, result, candidates[result.best.name])
    return result


def allocate_by_gates(
    design: StreamDesign,
    data: Data,
    recipe: PlacementRecipe,
    budget: Budget,
    out: Path,
    work: Work = HERE,
    *,
    factor: float = 2.0,
    lessons: Lessons | None = None,
) -> AllocationResult:
    """From `factor` times the design's channels down to the budget."""
    seed, device = work.seed, work.device
    recipe = recipe.resolved(device)
    lessons = lessons or _halves(data, recipe, seed, device)
    wide = with_channels(design, [round(factor * C) for C in all_channels(design)])
    folder, config = _open(out, data, recipe, budget, seed, "gates", [wide], lessons)
    halves, generator = lessons.images, torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        search = GateSearch(wide, budget, recipe, steps=recipe.epochs * halves.steps, device=device, loss=lessons.loss)

    def finish(epoch: int, rows: list[dict[str, Any]]) -> tuple[dict[str, Any], bool]:
        del epoch, rows
        return {"gates": search.spent().item(), "stages": str(search.allocation())}, False

    watch = Watch(folder, config, "allocate", ("epoch", "loss", "gates"), work.voice)
    with fast_convolutions(halves.device):
        rows = run_epochs(search, halves, generator, watch, epochs=recipe.epochs, finish=finish)
    kept = search.allocation()
    accuracy = held_out_accuracy(search.network, halves)
    minutes = round(sum(row["seconds"] for row in rows) / 60, 4)
    found = Allocation("gates", str(kept), kept.relus, 1.0, accuracy)
    result = AllocationResult("gates", budget.total, budget.unit, (found,), minutes)
    _write(folder, result, kept)
    return result


def with_accuracies(
    result: AllocationResult,
    candidates: Mapping[str, StreamDesign],
    train_design: Callable[[StreamDesign], float],
    out: Path,
    sweep: Sweep = IN_TURN,
) -> AllocationResult:
    """Every allocation trained by itself with the trainer that is passed in: what the search is held against."""
    accuracies = sweep.map({one.name: partial(train_design, candidates[one.name]) for one in result.allocations})
    found = tuple(replace(one, accuracy=score) for one, score in zip(result.allocations, accuracies, strict=True))
    result = replace(result, allocations=found)
    RunFolder(out).write_json(FILE, result.to_json())
    return result


def _open(
    out: Path,
    data: Data,
    recipe: PlacementRecipe,
    budget: Budget,
    seed: int,
    method: Method,
    designs: list[StreamDesign],
    lessons: Lessons,
) -> tuple[RunFolder, dict[str, Any]]:
    require_fit(designs[0], data)
    described = [design.to_json() for design in designs]
    belongs_to = fingerprint(
        described,
        data.identity(),
        recipe.to_json(),
        budget.total,
        budget.costs,
        seed,
        method,
        budget.multiple,
        lessons.identity,
    )
    config = {
        "stage": "allocate",
        "method": method,
        "seed": seed,
        "recipe": recipe.to_json(),
        "designs": described,
        "data": data.identity(),
        "budget": budget.total,
        "unit": budget.unit,
        "taught": lessons.identity,
    }
    return RunFolder(out, belongs_to=belongs_to, data=data.content), config


def _halves(data: Data, recipe: PlacementRecipe, seed: int, device: torch.device | str) -> Lessons:
    return Lessons(Halves(data, recipe.batch_size, flip=recipe.flip, crop=recipe.crop, seed=seed, device=device))


def _write(folder: RunFolder, result: AllocationResult, design: StreamDesign) -> None:
    folder.write_json(FILE, result.to_json())
    design.save(folder.path / "design.json")
