"""Trains a design on data by a recipe: one visible loop.

    result = train(Job(design, data, recipe, out=Path("runs/first")))

An epoch ends with a checkpoint, unless it is short beside the time that takes. Its random numbers depend on (seed,
epoch, rank) only, and an interrupt saves the place within the epoch, so that a resumed run repeats an uninterrupted one
bit for bit (CPU, equal thread count). The test images are touched once, after the last epoch: the result is the final
epoch's accuracy, not the best one's. A recipe may have them evaluated after every epoch (`test_each_epoch`), to stand
beside results that are the best epoch's.
"""

from __future__ import annotations

import time
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from sphynx.data.batches import Batches, BatchSettings, EpochBatches
from sphynx.data.images import ImageSet, Statistics
from sphynx.data.streamed import StreamedBatches, StreamedSet
from sphynx.errors import DivergedError, InputError, InterruptedWorkError
from sphynx.network.build import (
    AnyNetwork,
    as_designed,
    build_network,
    divide_logits,
    set_drop_path,
    width_multiple_of,
    with_width_multiple,
)
from sphynx.network.ensemble import Ensemble, members_of
from sphynx.network.fit import require_fit
from sphynx.network.layout import lay_out
from sphynx.network.trained import count_parameters, load_model, save_model
from sphynx.record import fingerprint
from sphynx.run.environment import device_name
from sphynx.run.folder import RunFolder
from sphynx.run.interrupt import Interrupt
from sphynx.run.progress import QUIET, Progress
from sphynx.run.saver import Saver
from sphynx.space.files import design_fingerprint
from sphynx.train.augmenting import augmentation_of
from sphynx.train.average import Average
from sphynx.train.calibration import fit_temperature
from sphynx.train.evaluate import Answers, evaluate
from sphynx.train.figures import draw_training
from sphynx.train.job import Job, describe_run, refuse_other_teacher
from sphynx.train.norms import estimate_norms
from sphynx.train.objective import Objective, weights_of_classes
from sphynx.train.recipe import drop_probability, learning_rate
from sphynx.train.results import RESULT, TrainResult
from sphynx.train.scores import Scores, score
from sphynx.train.step import Step, single_precision, uses_channels_last, uses_half_precision, width_multiple
from sphynx.train.views import (
    VIEW_SEED,
    VIEWS,
    Views,
    load_views,
    make_views,
    save_views,
    views_identity,
    weights_digest,
)
from sphynx.units import duration

COLUMNS = ("epoch", "loss", "train acc", "held out", "rate", "seconds")
HELD_OUT_SEED = 0


def train(job: Job) -> TrainResult:
    """Returns what it also writes to result.json, in every process."""
    require_fit(job.design, job.data)
    leads = job.processes.leads
    folder = job.folder(tensorboard=job.tensorboard and leads)
    with folder.alone() if leads else nullcontext():
        return _train(job, folder)


def _train(job: Job, folder: RunFolder) -> TrainResult:
    recipe, data, processes = job.recipe, job.data, job.processes
    state = folder.load_checkpoint() if job.resume else None
    train_images, held_out = data.train.split(recipe.held_out, HELD_OUT_SEED)
    if len(train_images) < 2:
        raise InputError(
            f"{len(train_images)} training image is left to learn from, and batch norm needs two",
            where=data.name,
            remedy="Give more images, or hold out a smaller share (`held_out`).",
        )
    if recipe.calibrate and not len(held_out):
        raise InputError(
            "a temperature is fitted to held-out images, and none is held out",
            where=data.name,
            remedy="Hold out a larger share (`held_out`), or set `calibrate` to false.",
        )
    views = open_views(job, train_images) if recipe.view_epochs else None
    if state:
        refuse_other_teacher(job, folder, views)
    if processes.leads:
        describe_run(job, folder, views)

    network, step = prepare_training(job, state["width_multiple"] if state else None, train_images.labels)
    kept = network if step.average is None else step.average.network  # what is evaluated and saved
    batches = make_batches(train_images, job)
    seconds_before = _restore(state, network, step, batches, folder) if state else 0.0
    started = time.monotonic()
    steps_done = batches.epoch * len(batches) + batches.position
    network.train()

    with (
        Interrupt() as interrupt,
        Saver(folder) as saver,
        Progress(
            "train",
            total=recipe.epochs * len(batches),
            columns=COLUMNS,
            done=steps_done,
            voice=job.voice if processes.leads else QUIET,
        ) as progress,
    ):
        for epoch in range(batches.epoch, recipe.epochs):
            epoch_started = time.monotonic()
            set_drop_path(network, drop_probability(recipe, epoch))
            if batches.position == 0:
                torch.manual_seed(_epoch_seed(job.seed, epoch, processes.rank))
                step.start_epoch()
            for x, y in batches:
                batch = (batches.position or len(batches)) - 1
                step.learning_rate.fill_(learning_rate(recipe, epoch, batch, len(batches)))
                step(x, y, *(() if views is None else (views.of(epoch, batch),)))
                progress.advance()
                if interrupt.requested and batches.position > 0 and processes.world == 1:
                    seconds = seconds_before + time.monotonic() - started
                    saver.save(_state(network, step, batches, seconds))
                    raise InterruptedWorkError(where=f"epoch {epoch + 1}, batch {batch + 1}")

            processes.total(step.sums)
            loss, accuracy, bad_step = step.read()
            if processes.any(bad_step is not None):
                raise _not_a_number(epoch, bad_step, folder, job)
            row = {
                "epoch": epoch + 1,
                "loss": loss,
                "train_accuracy": accuracy,
                "learning_rate": float(step.learning_rate),
            }
            if processes.leads:
                if len(held_out):
                    row["held_out_accuracy"] = evaluate(kept, held_out, data.mean, data.std).accuracy
                if recipe.test_each_epoch:
                    row["test_accuracy"] = evaluate(kept, data.test, data.mean, data.std).accuracy
                row["seconds"] = time.monotonic() - epoch_started
                seconds = seconds_before + time.monotonic() - started
                folder.append_metrics(row)
                if saver.due or interrupt.requested or epoch + 1 == recipe.epochs:
                    saver.save(_state(network, step, batches, seconds))
                progress.row(
                    epoch=epoch + 1,
                    loss=loss,
                    rate=row["learning_rate"],
                    seconds=row["seconds"],
                    **{"train acc": accuracy, "held out": row.get("held_out_accuracy")},
                )
            if processes.any(interrupt.requested) and epoch + 1 < recipe.epochs:
                raise InterruptedWorkError(where=f"after epoch {epoch + 1}")

        result = None
        if processes.leads:
            if recipe.norm_batches:
                fresh = make_batches(train_images, job)
                fresh.epoch = recipe.epochs
                estimate_norms(kept, fresh, recipe.norm_batches)
            trained, temperature = as_designed(kept), None
            if recipe.calibrate:
                temperature = temperature_of(trained, held_out, data.mean, data.std)
                divide_logits(trained, temperature)
            minutes = (seconds_before + time.monotonic() - started) / 60
            known = score_of(trained, held_out, data.mean, data.std) if len(held_out) else None
            result = finish_training(job, folder, trained, minutes, temperature, known)
            progress.note(f"{job.scored_on} accuracy {100 * result.accuracy:.2f} % after {duration(60 * minutes)}")
    return processes.shared(result)


def prepare_training(job: Job, multiple: int | None = None, labels: Tensor | None = None) -> tuple[AnyNetwork, Step]:
    """The network as the job's seed starts it, and what trains it on one batch. `labels`: of what it learns from."""
    recipe, processes, device = job.recipe, job.processes, job.processes.device
    torch.manual_seed(job.seed)
    network = build_network(job.design, auxiliary=recipe.auxiliary_head, drop_path=recipe.drop_path > 0)
    if job.start is not None:
        network.load_state_dict(job.start.state_dict())

    def placed(made: AnyNetwork) -> AnyNetwork:
        made = with_width_multiple(made.to(device), multiple or width_multiple(recipe, device))
        if uses_channels_last(recipe, device):
            lay_out(made, torch.channels_last)
        return made

    network = placed(network)
    runs_teacher = job.teacher is not None and not recipe.view_epochs
    weights = None
    if recipe.balance == "weights":
        learnt = job.data.train.labels if labels is None else labels
        weights = weights_of_classes(learnt, job.data.classes).to(device)
    teacher: nn.Module | None = None
    if job.teacher is not None and runs_teacher:
        placed_members = [placed(member) for member in members_of(job.teacher)]
        teacher = Ensemble(placed_members) if isinstance(job.teacher, Ensemble) else placed_members[0]
    objective = Objective(network, recipe, teacher, weights)
    average = Average(network, recipe.ema) if recipe.ema else None
    return network, Step(processes.wrap(objective), recipe, device, eager=processes.world > 1, average=average)


def make_batches(images: ImageSet | StreamedSet, job: Job) -> Batches | StreamedBatches:
    recipe, data = job.recipe, job.data
    settings: BatchSettings = {
        "device": job.processes.device,
        "augmentation": augmentation_of(recipe, mirrored=data.mirrored),
        "mean": data.mean,
        "std": data.std,
        "seed": VIEW_SEED if recipe.view_epochs else job.seed,
        "shard": (job.processes.rank, job.processes.world),
        "period": recipe.view_epochs,
        "balanced": recipe.balance == "sampling",
    }
    if isinstance(images, StreamedSet):
        return StreamedBatches(images, recipe.batch_size, **settings)
    return Batches(images, recipe.batch_size, **settings)


def score_of(network: AnyNetwork, images: ImageSet | StreamedSet, mean: Statistics, std: Statistics) -> Scores:
    answers = Answers()
    evaluate(network, images, mean, std, answers.add)
    return score(*answers.arrays, images.class_names, resamples=0)


def temperature_of(network: AnyNetwork, images: ImageSet | StreamedSet, mean: Statistics, std: Statistics) -> float:
    """The temperature that suits images which the network did not learn from."""
    answers = Answers()
    evaluate(network, images, mean, std, answers.add)
    return fit_temperature(*answers.arrays)


def open_views(job: Job, images: ImageSet | StreamedSet) -> Views:
    """From their file; where there is none, the teacher makes them."""
    device, path = job.processes.device, job.views or job.out / VIEWS
    if job.processes.world > 1:
        raise InputError(
            "views only work in one process", where="`view_epochs`", remedy="Use one process, or `view_epochs=0`."
        )
    belongs_to = views_identity(job.data.identity(), job.recipe)
    if path.is_file():
        return load_views(path, belongs_to, job.data.content, job.teacher, device)
    if job.teacher is None:
        raise InputError("there is no such file, and no teacher to make it", where=str(path), remedy="Give `teacher`.")
    with single_precision(job.recipe):
        views = make_views(
            job.teacher,
            make_batches(images, job),
            job.recipe.view_epochs,
            half=uses_half_precision(job.recipe, device),
            channels_last=uses_channels_last(job.recipe, device),
            voice=job.voice,
        )
    save_views(path, views, belongs_to, job.data.content)
    return views


def _epoch_seed(seed: int, epoch: int, rank: int) -> int:
    return int(fingerprint(seed, epoch, rank), 16) & (2**63 - 1)


def _state(network: AnyNetwork, step: Step, batches: EpochBatches, seconds: float) -> dict[str, Any]:
    return {
        "network": network.state_dict(),
        "width_multiple": width_multiple_of(network),
        "step": step.state_dict(),
        "batches": batches.state_dict(),
        "random_cpu": torch.get_rng_state(),
        "random_cuda": torch.cuda.get_rng_state(step.device) if step.device.type == "cuda" else None,
        "seconds": seconds,
    }


def _restore(state: dict[str, Any], network: nn.Module, step: Step, batches: EpochBatches, folder: RunFolder) -> float:
    network.load_state_dict(state["network"])
    step.load_state_dict(state["step"])
    batches.load_state_dict(state["batches"])
    torch.set_rng_state(state["random_cpu"])
    if step.device.type == "cuda" and state["random_cuda"] is not None:
        torch.cuda.set_rng_state(state["random_cuda"], step.device)
    folder.keep_metrics([row for row in folder.read_metrics() if row["epoch"] <= batches.epoch])
    return float(state["seconds"])


def _not_a_number(epoch: int, bad_step: int | None, folder: RunFolder, job: Job) -> DivergedError:
    step = "" if bad_step is None else f", step {bad_step + 1}"
    kept = f"The last checkpoint is kept in {folder.path}. " if epoch else ""
    return DivergedError(
        "the loss or its gradient is not a finite number",
        where=f"epoch {epoch + 1}{step}",
        remedy=f"{kept}Lower `learning_rate` (now {job.recipe.learning_rate}) or `grad_clip`, "
        'or use `precision="fp32"`.',
    )


def finish_training(
    job: Job,
    folder: RunFolder,
    network: AnyNetwork,
    minutes: float,
    temperature: float | None = None,
    held_out: Scores | None = None,
) -> TrainResult:
    """After the last epoch. `temperature`: what the logits were divided by; `held_out`: scores on such images."""
    answers = Answers()
    test = evaluate(network, job.data.test, job.data.mean, job.data.std, answers.add)
    scores = score(*answers.arrays, job.data.test.class_names, resamples=0)
    device = job.processes.device
    in_half = device.type == "cuda" or uses_half_precision(job.recipe, device)
    half = evaluate(network, job.data.test, job.data.mean, job.data.std, half=True) if in_half else None
    save_model(folder.path, network)
    metrics = folder.read_metrics()
    result = TrainResult(
        accuracy=test.accuracy,
        top5=test.top5,
        test_loss=test.loss,
        test_images=test.images,
        data=job.data.name,
        seed=job.seed,
        epochs=job.recipe.epochs,
        minutes=round(minutes, 3),
        device=device_name(device),
        processes=job.processes.world,
        parameters=count_parameters(network),
        design=design_fingerprint(job.design),
        best_test_accuracy=max((row["test_accuracy"] for row in metrics if "test_accuracy" in row), default=None),
        bf16_accuracy=None if half is None else half.accuracy,
        balanced_accuracy=scores.balanced_accuracy.value,
        mcc=scores.mcc.value,
        held_out_accuracy=None if held_out is None else held_out.accuracy.value,
        held_out_mcc=None if held_out is None else held_out.mcc.value,
        temperature=temperature,
        weights=weights_digest(load_model(folder.path)),  # as it was saved
    )
    folder.write_json(RESULT, result.to_json())
    draw_training(metrics, folder.figures / "training.svg")
    return result
