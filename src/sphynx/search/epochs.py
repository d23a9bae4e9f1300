"""The loop that cell search and placement share: epochs over two halves, a checkpoint after each that took long.

A batch's random numbers come from (seed, epoch) and samples from one host generator, so a run that is continued from
its checkpoint gives, on a CPU with the same number of threads, the same bits as one that was never stopped. An
interrupt saves the place within the epoch: an epoch of a large supernet takes half a minute of a GPU.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor

from sphynx.data.batches import Augmentation, Batches, plain_batches
from sphynx.data.images import Data, ImageSet
from sphynx.errors import InputError, InterruptedWorkError, SphynxError
from sphynx.run.environment import describe_environment
from sphynx.run.folder import RunFolder
from sphynx.run.interrupt import Interrupt
from sphynx.run.progress import NORMAL, Progress, Voice
from sphynx.run.saver import Saver
from sphynx.search.objective import Batch

EVALUATION_BATCH = 500


class Halves:
    """The training images in two stratified halves: weights learn from one, the architecture from the other."""

    def __init__(
        self, data: Data, batch_size: int, *, flip: bool, crop: bool, seed: int, device: torch.device | str
    ) -> None:
        if len(data.train) < 4:
            raise InputError(
                f"{data.name} has {len(data.train)} training images: too few for two halves",
                remedy="Use more images.",
            )
        if all(torch.equal(image, data.train.images[0]) for image in data.train.images):
            raise InputError(
                f"the training images of {data.name} are all alike: nothing can be learned from them",
                remedy="Use images that differ.",
            )
        self._data, self.device = data, torch.device(device)
        first, second = data.train.halves(seed)
        order = torch.randperm(len(second), generator=torch.Generator().manual_seed(seed))
        self._second = second.subset(order)
        augmentation = Augmentation(crop=crop, flip=flip and data.mirrored)

        def batches(images: ImageSet, own_seed: int) -> Batches:
            return Batches(
                images,
                batch_size,
                device=device,
                augmentation=augmentation,
                mean=data.mean,
                std=data.std,
                seed=own_seed,
            )

        self._train, self._held_out = batches(first, 2 * seed), batches(self._second, 2 * seed + 1)
        self.steps = min(len(self._train), len(self._held_out))

    def pairs(self, epoch: int, start: int = 0) -> Iterator[tuple[Batch, Batch]]:
        """(training batch, held-out batch), as many as the shorter half has; those from number `start` on."""
        return zip(_epoch_of(self._train, epoch, start), _epoch_of(self._held_out, 2 * epoch, start), strict=False)

    def held_out(self, epoch: int) -> Iterator[Batch]:
        """A further pass over the held-out half, in another order."""
        return _epoch_of(self._held_out, 2 * epoch + 1)

    def evaluation(self) -> Iterator[Batch]:
        """The held-out half, not augmented, in one order that mixes its classes.

        A supernet normalises by the statistics of the batch: one of only two classes, as a folder of images in its own
        order would give, is unlike any that it was trained on.
        """
        # One image alone has no such statistics where its maps are a single pixel.
        size = next(size for size in count(EVALUATION_BATCH) if len(self._second) % size != 1)
        return plain_batches(self._second, size, device=self.device, mean=self._data.mean, std=self._data.std)


def _epoch_of(batches: Batches, epoch: int, start: int = 0) -> Iterator[Batch]:
    batches.load_state_dict({"seed": batches.seed, "epoch": epoch, "position": start})
    return iter(batches)


@dataclass(frozen=True)
class Begun:
    """How far an epoch had come when it was interrupted."""

    steps: int = 0
    losses: float = 0.0  # their sum
    seconds: float = 0.0


Given_co = TypeVar("Given_co", bound=tuple[Tensor, ...], covariant=True)  # a training batch
Taken_contra = TypeVar("Taken_contra", bound=tuple[Tensor, ...], contravariant=True)
Trained = TypeVar("Trained", bound=tuple[Tensor, ...])


class Pairs(Protocol[Given_co]):
    """Images that weights learn from beside images that the architecture learns from: `Halves`, or ones with more in a
    training batch than labels."""

    device: torch.device
    steps: int

    def pairs(self, epoch: int, start: int = 0) -> Iterator[tuple[Given_co, Batch]]: ...
    def evaluation(self) -> Iterator[Batch]: ...


class Learner(Protocol[Taken_contra]):
    def start_epoch(self, epoch: int) -> None: ...
    def step(self, train: Taken_contra, held_out: Batch) -> Tensor: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: Mapping[str, Any]) -> None: ...


@dataclass(frozen=True)
class Watch:
    """The place where a run is kept and shown."""

    folder: RunFolder
    config: Mapping[str, Any]  # the settings, written once it is known that the folder is this run's
    title: str
    columns: tuple[str, ...]
    voice: Voice = NORMAL
    save_seconds: float = 10.0  # checkpoints of many networks are large: not after every short epoch


# After an epoch: what to record of it, and whether to stop. `rows` are the records of all epochs before.
Finish = Callable[[int, list[dict[str, Any]]], tuple[dict[str, Any], bool]]


def run_epochs(
    learner: Learner[Trained],
    halves: Pairs[Trained],
    generator: torch.Generator,
    watch: Watch,
    *,
    epochs: int,
    finish: Finish,
) -> list[dict[str, Any]]:
    """Runs, or continues, until `epochs` or until `finish` says stop; the records of all epochs."""
    with watch.folder.alone():
        return _run_epochs(learner, halves, generator, watch, epochs, finish)


def _run_epochs(
    learner: Learner[Trained],
    halves: Pairs[Trained],
    generator: torch.Generator,
    watch: Watch,
    epochs: int,
    finish: Finish,
) -> list[dict[str, Any]]:
    folder = watch.folder
    rows: list[dict[str, Any]] = []
    begun = Begun()
    saved = folder.load_checkpoint()
    folder.write_json("config.json", watch.config)
    folder.write_json("environment.json", describe_environment(halves.device))
    if saved is not None:
        learner.load_state_dict(saved["learner"])
        generator.set_state(saved["generator"])
        rows, begun = saved["rows"], Begun(**saved.get("begun", {}))
    folder.keep_metrics(rows)
    if saved is not None and saved["stopped"]:
        return rows
    if halves.device.type == "cuda":
        torch.backends.cudnn.benchmark = True  # shapes never change: measure the convolutions once
    total = epochs * halves.steps
    saved_at = time.monotonic()

    def state(*, stopped: bool, begun: Begun) -> dict[str, Any]:
        return {
            "learner": learner.state_dict(),
            "generator": generator.get_state(),
            "rows": rows,
            "stopped": stopped,
            "begun": vars(begun),
        }

    with (
        Interrupt() as interrupt,
        Saver(folder) as saver,
        Progress(
            watch.title,
            total=total,
            done=len(rows) * halves.steps + begun.steps,
            columns=watch.columns,
            voice=watch.voice,
        ) as progress,
    ):
        for epoch in range(len(rows), epochs):
            started = time.monotonic() - begun.seconds
            learner.start_epoch(epoch)
            losses = torch.tensor(begun.losses, dtype=torch.float64, device=halves.device)
            for number, (train, held_out) in enumerate(halves.pairs(epoch, begun.steps), start=begun.steps + 1):
                losses = losses + learner.step(train, held_out)
                progress.advance()
                if interrupt.requested:
                    here = Begun(number, float(losses), time.monotonic() - started)
                    saver.save(state(stopped=False, begun=here))
                    raise InterruptedWorkError(where=f"{watch.title}, epoch {epoch}")
            begun = Begun()
            mean_loss = float(losses) / halves.steps  # the one place where an epoch waits for the device
            if mean_loss != mean_loss or mean_loss in (float("inf"), float("-inf")):
                raise SphynxError(
                    f"the loss became {mean_loss} in epoch {epoch}",
                    where=watch.title,
                    remedy="Lower the learning rate."
                    + (f" The last good checkpoint is in {folder.path}." if folder.has_checkpoint else ""),
                )
            record, stop = finish(epoch, rows)
            rows.append({"epoch": epoch, "loss": mean_loss, **record, "seconds": time.monotonic() - started})
            folder.append_metrics(rows[-1])
            if stop or epoch + 1 == epochs or time.monotonic() - saved_at >= watch.save_seconds:
                saver.save(state(stopped=stop, begun=begun))
                saved_at = time.monotonic()
            progress.row(**{name: rows[-1].get(name) for name in watch.columns})
            if stop:
                break
    return rows
