"""Runs Algorithm 1 on a data set: candidate networks, halves, run folder; beta over time as `beta.json`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from sphynx.data.images import Data
from sphynx.network.builder import SphynxNetwork
from sphynx.network.fit import require_fit
from sphynx.network.layout import lay_out
from sphynx.network.widen import widened
from sphynx.record import Record, fingerprint
from sphynx.run.folder import RunFolder
from sphynx.run.sweep import IN_TURN, Sweep
from sphynx.run.work import HERE, Work
from sphynx.search.epochs import Halves
from sphynx.search.placement.algorithm import PlacementSearch
from sphynx.search.placement.candidate_run import run_candidates
from sphynx.search.placement.candidates import Placement
from sphynx.search.placement.recipe import PlacementRecipe
from sphynx.search.weight_steps import memory_format
from sphynx.space.design import Design

FORMAT = "sphynx-placement/1"


@dataclass(frozen=True)
class PlacementResult(Record):
    """The places of the reduce cells that were tried, and how likely each was to the search after every epoch.

    >>> placed = sphynx.place_reduce_cells("design.json", "digits", out="runs/placed")  # doctest: +SKIP
    >>> placed.best, placed.beta_hat[-1]  # doctest: +SKIP
    """

    placements: tuple[Placement, ...]
    beta_hat: tuple[tuple[float, ...], ...]  # per epoch, per placement
    held_out_accuracy: tuple[float, ...]  # per placement, with the weights it has after the search
    accuracy: tuple[float, ...] | None = None  # per placement, trained by itself (exhaustive)
    minutes: float = field(default=0.0, compare=False)  # of the search alone, interruptions left out

    @property
    def best(self) -> Placement:
        final = self.beta_hat[-1]
        return self.placements[max(range(len(final)), key=lambda number: final[number])]

    def to_json(self) -> dict[str, Any]:
        return {"format": FORMAT, "best": list(self.best), **super().to_json()}


def candidate_networks(
    design: Design, placements: Sequence[Placement], width_multiple: int = 1
) -> tuple[nn.ModuleList, nn.Module]:
    """One network per placement, without auxiliary head or drop-path, and the stem that they share.

    `width_multiple` rounds widths up, which changes nothing that they compute or learn (see `network.widen`).
    """
    narrow = [SphynxNetwork(replace(design, reduce_positions=p, name="")) for p in placements]
    networks = nn.ModuleList(widened(network, width_multiple) for network in narrow)
    stem = networks[0].stem
    for network in networks:
        network.stem = stem
    assert isinstance(stem, nn.Module)
    return networks, stem


def place(
    design: Design,
    data: Data,
    recipe: PlacementRecipe,
    placements: Sequence[Placement],
    out: Path,
    work: Work = HERE,
) -> PlacementResult:
    """Searches, or continues the search in `out`. The design's own reduce positions play no part."""
    seed, recipe = work.seed, recipe.resolved(work.device)
    require_fit(design, data)
    belongs_to = fingerprint(design.to_json(), data.identity(), recipe.to_json(), [list(p) for p in placements], seed)
    folder = RunFolder(out, belongs_to=belongs_to, data=data.content)
    config = {
        "stage": "place",
        "seed": seed,
        "recipe": recipe.to_json(),
        "design": design.to_json(),
        "data": data.identity(),
    }
    search, halves, generator = prepare_placement(design, data, recipe, placements, seed=seed, device=work.device)

    beta_hat, accuracies, minutes = run_candidates(
        search,
        halves,
        generator,
        folder,
        config,
        [str(p) for p in placements],
        epochs=recipe.epochs,
        voice=work.voice,
    )
    result = PlacementResult(tuple(placements), beta_hat, accuracies, minutes=minutes)
    folder.write_json("beta.json", result.to_json())
    replace(design, reduce_positions=result.best).save(folder.path / "design.json")
    return result


def prepare_placement(
    design: Design,
    data: Data,
    recipe: PlacementRecipe,
    placements: Sequence[Placement],
    *,
    seed: int,
    device: torch.device | str,
) -> tuple[PlacementSearch, Halves, torch.Generator]:
    """A placement search before its first step."""
    recipe = recipe.resolved(device)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        networks, stem = candidate_networks(design, placements, recipe.channel_multiple)
    networks.to(device)
    lay_out(networks, memory_format(recipe))
    halves = Halves(data, recipe.batch_size, flip=recipe.flip, crop=recipe.crop, seed=seed, device=device)
    generator = torch.Generator().manual_seed(seed)
    steps = recipe.epochs * halves.steps
    return PlacementSearch(list(networks), stem, recipe, steps=steps, generator=generator), halves, generator


def with_exhaustive(
    result: PlacementResult, design: Design, train_design: Callable[[Design], float], out: Path, sweep: Sweep = IN_TURN
) -> PlacementResult:
    """The paper's grid search: every placement trained by itself with the trainer that is passed in."""
    placed = {f"reduce at {p}": replace(design, reduce_positions=p, name="") for p in result.placements}
    accuracy = tuple(sweep.map({name: partial(train_design, one) for name, one in placed.items()}))
    result = replace(result, accuracy=accuracy)
    RunFolder(out).write_json("beta.json", result.to_json())
    return result
