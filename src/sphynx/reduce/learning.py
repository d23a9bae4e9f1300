"""Steps of a method's own: a network with trainable activations learns from the original's answers, labels unread.

Weights learn by SGD at a falling rate, whatever else is given (masks, gates) by Adam. One visible loop, which continues
where an interrupt left it; an epoch's random numbers are those of its batches.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from sphynx.errors import DivergedError, InterruptedWorkError
from sphynx.network.backend import fast_convolutions
from sphynx.network.layout import lay_out
from sphynx.record import fingerprint
from sphynx.reduce.task import Task
from sphynx.run.folder import RunFolder
from sphynx.run.interrupt import Interrupt
from sphynx.run.progress import Progress
from sphynx.run.saver import Saver
from sphynx.run.update import Value
from sphynx.train.objective import distillation_loss
from sphynx.train.step import uses_channels_last, uses_half_precision
from sphynx.train.views import weights_digest

MOMENTUM = 0.9
LARGEST_GRADIENT = 5.0


class Pressure(Protocol):
    """A method's own term of the loss, and how it changes after each step."""

    def loss(self) -> Tensor: ...

    def after_step(self, share: float) -> None:
        """`share`: of all steps that are done."""

    def row(self) -> Mapping[str, Value]:
        """Tell of an epoch."""

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None: ...


class NoPressure:
    """Plain distillation."""

    def loss(self) -> Tensor:
        return torch.zeros(())

    def after_step(self, share: float) -> None:
        del share

    def row(self) -> Mapping[str, Value]:
        return {}

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        del state


def learn(
    task: Task,
    network: nn.Module,
    epochs: int,
    *,
    stage: str,
    pressure: Pressure | None = None,
    masks: Sequence[nn.Parameter] = (),
    mask_rate: float = 0.0,
    extra_loss: Callable[[Tensor], Tensor] | None = None,
) -> None:
    """Train the network in place. `masks` learn by Adam; `extra_loss` is of a batch's images, after the forward pass.

    `stage` names the folder below the task's in which the work is kept. Where the original's logits are kept as views,
    no step runs it, unless an extra loss reads its maps.
    """
    pressure = pressure or NoPressure()
    if epochs == 0:
        return
    folder = RunFolder(task.out / stage, belongs_to=_belongs_to(task, network, epochs, stage), data=task.data.content)
    state = folder.load_checkpoint() if task.resume else None
    batches, recipe = task.batches(), task.recipe
    own = {id(mask) for mask in masks}
    weights = [parameter for parameter in network.parameters() if id(parameter) not in own]
    layout = torch.channels_last if uses_channels_last(recipe, task.device) else torch.contiguous_format
    network.to(task.device).train()
    teacher = task.original.to(task.device).eval().requires_grad_(False)
    for laid_out in (network, teacher):
        lay_out(laid_out, layout)
    by_sgd = torch.optim.SGD(weights, lr=task.settings.search_rate, momentum=MOMENTUM, nesterov=True)
    by_adam = torch.optim.Adam(list(masks), lr=mask_rate) if masks else None
    optimisers = [by_sgd, *([by_adam] if by_adam else [])]
    if state:
        network.load_state_dict(state["network"])
        for optimiser, kept in zip(optimisers, state["optimisers"], strict=True):
            optimiser.load_state_dict(kept)
        batches.load_state_dict(state["batches"])
        pressure.load_state_dict(state["pressure"])
    half = uses_half_precision(recipe, task.device)
    columns = ("epoch", "loss", *pressure.row())
    done, steps = batches.epoch * len(batches) + batches.position, epochs * len(batches)

    def current() -> dict[str, Any]:
        return {
            "network": network.state_dict(),
            "optimisers": [optimiser.state_dict() for optimiser in optimisers],
            "batches": batches.state_dict(),
            "pressure": pressure.state_dict(),
        }

    with (
        Interrupt() as interrupt,
        Saver(folder) as saver,
        fast_convolutions(task.device),
        Progress(stage, total=steps, columns=columns, done=done, voice=task.voice) as progress,
    ):
        while batches.epoch < epochs:
            epoch, total, count = batches.epoch, torch.zeros((), device=task.device), 0
            for x, _ in batches:
                by_sgd.param_groups[0]["lr"] = _falling(task.settings.search_rate, done / steps)
                x = x.contiguous(memory_format=layout)
                with torch.autocast(task.device.type, torch.bfloat16, enabled=half):
                    if task.views is None or extra_loss is not None:
                        with torch.no_grad():
                            taught = teacher(x)
                    else:
                        taught = task.views.of(epoch, (batches.position or len(batches)) - 1)
                    logits = network(x)
                loss = recipe.distillation_weight * distillation_loss(logits.float(), taught.float(), recipe)
                if extra_loss is not None:
                    loss = loss + extra_loss(x)
                for optimiser in optimisers:
                    optimiser.zero_grad(set_to_none=True)
                (loss + pressure.loss().to(loss.device)).backward()
                nn.utils.clip_grad_norm_(weights, LARGEST_GRADIENT)
                for optimiser in optimisers:
                    optimiser.step()
                done += 1
                pressure.after_step(done / steps)
                total, count = total + loss.detach(), count + 1
                progress.advance()
                if interrupt.requested and batches.position > 0:
                    saver.save(current())
                    raise InterruptedWorkError(where=f"{stage}, epoch {epoch + 1}, batch {batches.position}")
            mean = float(total) / max(count, 1)
            if not math.isfinite(mean):
                raise DivergedError(
                    "the loss is not a finite number",
                    where=f"{stage}, epoch {epoch + 1}",
                    remedy=f"Lower `search_rate` (now {task.settings.search_rate}).",
                )
            progress.row(epoch=epoch + 1, loss=mean, **pressure.row())
            folder.append_metrics({"epoch": epoch + 1, "loss": mean, **pressure.row()})
            if saver.due or interrupt.requested or epoch + 1 == epochs:
                saver.save(current())
            if interrupt.requested and epoch + 1 < epochs:
                raise InterruptedWorkError(where=f"{stage}, after epoch {epoch + 1}")
    network.eval()


def _falling(rate: float, share: float) -> float:
    """A cosine that ends at a tenth: the masks are not yet those of the training that follows."""
    return rate * (0.55 + 0.45 * math.cos(math.pi * share))


def _belongs_to(task: Task, network: nn.Module, epochs: int, stage: str) -> str:
    """Name what the work depends on. The first weights are not among it: squares that are fitted again on a GPU may
    differ in a last bit, and a checkpoint replaces them anyway."""
    return fingerprint(
        weights_digest(task.original),
        {name: list(tensor.shape) for name, tensor in network.state_dict().items()},
        task.data.identity(),
        task.settings.to_json(),
        task.recipe.to_json(),
        task.relu_budget,
        task.seed,
        epochs,
        stage,
    )
