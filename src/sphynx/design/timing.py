"""How long an epoch of each stage of a design takes, measured on this device by real steps after warm-up.

`forecast` says which networks are timed, and `time_budget` makes schedules of the measured seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from sphynx.data.images import Data
from sphynx.network.backend import fast_convolutions
from sphynx.network.build import as_designed
from sphynx.run.folder import RunFolder
from sphynx.search.epochs import EVALUATION_BATCH, Halves, Learner
from sphynx.search.objective import Batch
from sphynx.search.placement.candidates import Placement
from sphynx.search.placement.place import prepare_placement
from sphynx.search.placement.recipe import PlacementRecipe
from sphynx.search.recipe import SearchRecipe
from sphynx.search.search import Searcher, prepare_search
from sphynx.space.design import Design
from sphynx.train.evaluate import evaluate
from sphynx.train.job import Job
from sphynx.train.loop import finish_training, make_batches, prepare_training

WARMUP_STEPS, MAX_STEPS, ENOUGH_SECONDS = 1, 10, 0.5


def search_epoch_seconds(data: Data, strategy: str, recipe: SearchRecipe, device: torch.device) -> float:
    """The mean over the whole search: an epoch in which only w learns takes about half as long as a later one."""
    searcher, halves, _ = prepare_search(data, strategy, recipe, seed=0, device=device)

    def seconds(epoch: int) -> float:
        return _steps_seconds(searcher, halves, epoch) + _finish_seconds(searcher, halves, len(data.train) // 2)

    with fast_convolutions(device):
        warming = searcher.strategy.warmup_epochs
        in_warmup = warming * seconds(0) if warming else 0.0
        return (in_warmup + (recipe.epochs - warming) * seconds(recipe.epochs - 1)) / recipe.epochs


def placement_epoch_seconds(
    design: Design, data: Data, recipe: PlacementRecipe, placements: Sequence[Placement], device: torch.device
) -> float:
    search, halves, _ = prepare_placement(design, data, recipe, placements, seed=0, device=device)
    with fast_convolutions(device):
        return _steps_seconds(search, halves, 0)


def training_epoch_seconds(job: Job, *, from_views: bool = False) -> float:
    """`from_views`: batches come with a teacher's logits, whatever these are."""
    network, step = prepare_training(job)
    network.train()
    images, _ = job.data.train.split(job.recipe.held_out, 0)
    batches = make_batches(images, job)
    turns = _endless(batches)

    def learn() -> None:
        x, y = next(turns)
        step(x, y, *([x.new_zeros(len(x), job.data.classes)] if from_views else []))

    # All steps are alike: one that takes long is enough.
    return len(batches) * seconds_of(learn, job.processes.device, least_calls=1)


@dataclass(frozen=True)
class RunEnd:
    """The time that a training takes after its last epoch."""

    files_seconds: float  # results, the network, a figure
    image_seconds: float  # of evaluation

    def seconds(self, images: int) -> float:
        return self.files_seconds + images * self.image_seconds


def run_end(job: Job) -> RunEnd:
    network, device = as_designed(prepare_training(job)[0]), job.processes.device
    images, data = job.data.test.sample(job.recipe.batch_size), job.data
    evaluation = seconds_of(lambda: evaluate(network, images, data.mean, data.std), device, least_calls=1)
    hardly_any = replace(job, data=Data(data.name, images, images.sample(1), data.mean, data.std))
    with TemporaryDirectory() as folder:
        run = RunFolder(Path(folder))
        files = seconds_of(lambda: finish_training(hardly_any, run, network, 0.0), device, least_calls=1)
    return RunEnd(files, evaluation / len(images))


def seconds_of(work: Callable[[], object], device: torch.device, *, least_calls: int = 2) -> float:
    """The mean of a few calls, after warm-up."""
    for _ in range(WARMUP_STEPS):
        work()
    _wait(device)
    started, done = time.monotonic(), 0
    while done < least_calls or (done < MAX_STEPS and time.monotonic() - started < ENOUGH_SECONDS):
        work()
        done += 1
    _wait(device)
    return (time.monotonic() - started) / done


def _steps_seconds(learner: Learner[Batch], halves: Halves, epoch: int) -> float:
    learner.start_epoch(epoch)
    turns = cycle(list(islice(halves.pairs(0), MAX_STEPS)))
    return halves.steps * seconds_of(lambda: learner.step(*next(turns)), halves.device)


def _finish_seconds(searcher: Searcher, halves: Halves, images: int) -> float:
    """Estimate how long a pass takes to finish: a strategy's work and the evaluation grow linearly with the batches."""
    strategy, shared = searcher.strategy, searcher.shared

    def finish(batches: int) -> float:
        started = time.monotonic()
        strategy.finish_epoch(islice(halves.held_out(0), batches), last=False)
        _wait(halves.device)
        return time.monotonic() - started

    one, three = finish(1), finish(3)
    started = time.monotonic()
    shared.mean_reward(islice(halves.evaluation(), 1), strategy.mixtures())
    evaluation = (time.monotonic() - started) * max(images / EVALUATION_BATCH, 1.0)  # the last batch has the rest
    return one + (halves.steps - 1) * max(three - one, 0.0) / 2 + evaluation


def _endless(batches: Any) -> Iterator[Any]:
    while True:
        yield from batches


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
