"""Runs a cell search on a data set: supernet, halves, strategy, early stopping; one run folder per seed.

config.json  environment.json  checkpoint.pt  metrics.jsonl (per epoch: loss, held-out accuracy, skips, genotype,
eigenvalue)   strengths.json (per epoch: the architecture weights)   genotype.json (the result)   result.json
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Any

import torch

from sphynx.data.images import Data
from sphynx.errors import InputError
from sphynx.network.backend import fast_convolutions
from sphynx.network.layout import lay_out
from sphynx.record import Record, fingerprint
from sphynx.run.folder import RunFolder
from sphynx.run.work import HERE, Work
from sphynx.search.captured import Captures
from sphynx.search.epochs import Halves, Watch, run_epochs
from sphynx.search.objective import Batch, Objective
from sphynx.search.perturbation import select_by_perturbation
from sphynx.search.recipe import SearchRecipe
from sphynx.search.stopping import dominant_eigenvalue, eigenvalue_grew, too_many_skips
from sphynx.search.strategies import STRATEGIES, Maker, channel_divisor, is_relaxed, maker_of, name_of
from sphynx.search.strategies.strategy import Strategy, relaxed
from sphynx.search.supernet.cellspace import KINDS, CellSpace, count_operation
from sphynx.search.supernet.mixture import Mixtures
from sphynx.search.supernet.supernet import Supernet
from sphynx.search.supernet.weights import SharedWeights
from sphynx.search.supernet.widen import widened_supernet
from sphynx.search.weight_steps import memory_format
from sphynx.space.design import Design
from sphynx.space.genotype import Genotype
from sphynx.space.published_cells import SPHYNX
from sphynx.space.tally import Shape

RESULT = "result.json"


@dataclass(frozen=True)
class SearchResult(Record):
    strategy: str
    seed: int
    genotype: Genotype
    held_out_accuracy: float  # of the supernet, as the strategy uses it at the end
    epochs: int
    stopped: str  # why it stopped before its last epoch, or nothing

    def _repr_html_(self) -> str:
        """Show the cells that were found in a notebook."""
        return self.genotype._repr_html_()


class Searcher:
    """A strategy and the weights it shares, as the epoch loop sees them."""

    def __init__(self, strategy: Strategy, shared: SharedWeights) -> None:
        self.strategy, self.shared = strategy, shared
        captured = bool(shared.recipe.cuda_graphs) and shared.device.type == "cuda"
        self._captures = Captures(captured, lanes=bool(shared.recipe.lanes))

    def start_epoch(self, epoch: int) -> None:
        self.shared.start_epoch(epoch)
        self.strategy.start_epoch(epoch)

    def step(self, train: Batch, held_out: Batch) -> torch.Tensor:
        strategy = self.strategy
        if not relaxed(strategy):
            return strategy.step(train, held_out)
        # It evaluates everything in every step, so that one graph (one more while w warms up) serves all of them.
        return self._captures.run(
            strategy.epoch >= strategy.warmup_epochs,
            lambda x, y, held_out_x, held_out_y: strategy.step((x, y), (held_out_x, held_out_y)),
            (*train, *held_out),
            lambda: [*self.shared.tensors(), *strategy.tensors()],
        )

    def state_dict(self) -> dict[str, Any]:
        return {"strategy": self.strategy.state_dict(), "shared": self.shared.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.strategy.load_state_dict(state["strategy"])
        self.shared.load_state_dict(state["shared"])


def search_cells(
    data: Data,
    strategy: str | Maker,
    recipe: SearchRecipe,
    out: Path,
    work: Work = HERE,
    *,
    objective: Objective | None = None,
) -> SearchResult:
    """Searches, or continues the search in `out`. The strategy is one of STRATEGIES, or a class of your own."""
    seed, device, recipe = work.seed, work.device, recipe.resolved(work.device)
    objective = objective or Objective()
    _require_relaxation(strategy, recipe)
    name = name_of(strategy)
    costs = {"operation_costs": dict(objective.operation_costs), "cost_weight": objective.cost_weight}
    belongs_to = fingerprint(name, data.identity(), recipe.to_json(), costs, seed)
    folder = RunFolder(out, belongs_to=belongs_to, data=data.content)
    config = {
        "stage": "search",
        "strategy": name,
        "seed": seed,
        "recipe": recipe.to_json(),
        "data": data.identity(),
        **costs,
    }
    searcher, halves, generator = prepare_search(data, strategy, recipe, seed=seed, device=device, objective=objective)
    learner, shared = searcher.strategy, searcher.shared

    def finish(epoch: int, rows: list[dict[str, Any]]) -> tuple[dict[str, Any], bool]:
        learner.finish_epoch(halves.held_out(epoch), last=epoch + 1 == recipe.epochs)
        genotype = learner.genotype()
        record: dict[str, Any] = {
            "held_out": shared.mean_reward(halves.evaluation(), learner.mixtures()),
            "skips": count_operation(genotype.normal, "skip"),
            "genotype": genotype.to_json(),
            "strengths": {kind: strengths.tolist() for kind, strengths in learner.strengths().items()},
            "stopped": "skips" if too_many_skips(genotype, recipe) else "",
        }
        if recipe.hessian and relaxed(learner):
            batch = next(halves.held_out(epoch))
            record["eigenvalue"] = dominant_eigenvalue(
                lambda: learner.held_out_loss(batch),
                learner.parameters(),
                iterations=recipe.hessian_iterations,
                generator=generator,
            )
            if eigenvalue_grew([*(row["eigenvalue"] for row in rows), record["eigenvalue"]], recipe):
                record["stopped"] = "eigenvalue"
        return record, bool(record["stopped"])

    columns = ("epoch", "loss", "held_out", "skips", *(["eigenvalue"] if recipe.hessian else []))
    watch = Watch(folder, config, f"search {name}", columns, work.voice)
    with fast_convolutions(device):
        rows = run_epochs(searcher, halves, generator, watch, epochs=recipe.epochs, finish=finish)
        genotype = _choose(rows, recipe)
        if recipe.selection == "perturbation":
            genotype = _select(learner, shared, halves, generator)
    result = SearchResult(name, seed, genotype, rows[-1]["held_out"], len(rows), rows[-1]["stopped"])
    folder.write_json(
        "strengths.json", {"operations": shared.network.space.candidates, "epochs": [row["strengths"] for row in rows]}
    )
    genotype.save(folder.path / "genotype.json")
    folder.write_json(RESULT, result.to_json())
    return result


def prepare_search(
    data: Data,
    strategy: str | Maker,
    recipe: SearchRecipe,
    *,
    seed: int,
    device: torch.device | str,
    objective: Objective | None = None,
) -> tuple[Searcher, Halves, torch.Generator]:
    """A search before its first step."""
    recipe = recipe.resolved(device)
    generator = torch.Generator().manual_seed(seed)
    supernet = _supernet(data, strategy, recipe, seed).to(device)
    lay_out(supernet, memory_format(recipe))
    shared = SharedWeights(supernet, recipe, objective)
    halves = Halves(data, recipe.batch_size, flip=recipe.flip, crop=recipe.crop, seed=seed, device=device)
    return Searcher(maker_of(strategy)(shared, generator), shared), halves, generator


def _supernet(data: Data, strategy: str | Maker, recipe: SearchRecipe, seed: int) -> Supernet:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        narrow = Supernet(
            Design(
                SPHYNX,
                recipe.channels,
                recipe.depth,
                recipe.reduce_positions,
                Shape(*data.train.shape),
                data.classes,
                conv_stack=recipe.conv_stack,
                balancing="relu" if recipe.supernet == "text" else "flop",
            ),
            CellSpace(recipe.nodes),
            form=recipe.supernet,
            channel_divisor=channel_divisor(strategy, recipe),
        )
        return widened_supernet(narrow, recipe.channel_multiple)


def _choose(rows: list[dict[str, Any]], recipe: SearchRecipe) -> Genotype:
    """Take the last or the best epoch's cells, as the recipe says; of a stopped search, only epochs before the cause
    count."""
    back = {"skips": 1, "eigenvalue": recipe.hessian_window}.get(rows[-1]["stopped"], 0)
    sound = rows[: max(len(rows) - back, 1)]
    row = max(sound, key=lambda row: float(row["held_out"])) if recipe.epoch == "best" else sound[-1]
    return Genotype.from_json(row["genotype"])


def _require_relaxation(strategy: str | Maker, recipe: SearchRecipe) -> None:
    if not is_relaxed(strategy):
        for wanted, what in (
            (recipe.hessian, "the Hessian's eigenvalue"),
            (recipe.selection == "perturbation", "perturbation-based selection"),
        ):
            if wanted:
                raise InputError(
                    f"{what} needs a strategy that mixes all operations, which {name_of(strategy)} does not",
                    remedy=f"Use it with one of {', '.join(filter(is_relaxed, STRATEGIES))}.",
                )


def _select(learner: Strategy, shared: SharedWeights, halves: Halves, generator: torch.Generator) -> Genotype:
    further = count(shared.recipe.epochs)
    training = (train for epoch in further for train, _ in halves.pairs(epoch))

    def tune(mixtures: Mixtures) -> None:
        for batch in islice(training, shared.recipe.perturbation_tune_steps):
            shared.update(batch, mixtures)

    with torch.no_grad():
        mixtures = learner.mixtures()
    kinds = tuple(kind for kind in KINDS if shared.network.cell_counts[kind])
    return select_by_perturbation(
        shared.network.space,
        mixtures,
        kinds,
        lambda mixed: shared.mean_reward(halves.evaluation(), mixed),
        tune,
        generator,
    )
