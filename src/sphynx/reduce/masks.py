"""Learned masks: y = c ReLU(x) + (1 - c) o(x), where o is the identity or a parabola; one c for each value or channel.

Masks learn together with the weights, from the original's answers and under a penalty on the ReLUs that they keep. The
penalty's weight follows a target that falls to the budget, step by step, up and down; so the number of epochs is known
before. In the end the largest masks stay ReLUs, by what they were lately, on average.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from sphynx.network.reduced import letters, replace_relus
from sphynx.network.square import Square
from sphynx.reduce.learning import learn
from sphynx.reduce.parabola import start_squares
from sphynx.reduce.task import Choice, Task
from sphynx.run.update import Value
from sphynx.space.reduced import IDENTITY, SQUARE
from sphynx.space.tally import Shape

THRESHOLD = 0.01  # a mask below counts as gone
FIRST_WEIGHT, GROWTH = 1e-5, 1.05  # of the penalty
MEMORY = 0.95  # of the average, for each step
REACHED_BY = 0.8  # of the steps: then the target is the budget
QUICKEST = 0.1  # of the steps: what a mask takes from 1 to 0 where no rate is given


class Masked(nn.Module):
    """Stands in the place of a ReLU."""

    def __init__(self, shape: Shape, *, per_value: bool, squares: bool) -> None:
        super().__init__()
        self.mask = nn.Parameter(torch.ones(shape if per_value else (shape.channels, 1, 1)))
        self.square = Square(shape.channels) if squares else None

    def forward(self, x: Tensor) -> Tensor:
        shape = x.shape
        if x.ndim == 2:  # behind a dense layer
            x = x[:, :, None, None]
        other = x if self.square is None else self.square(x)
        return (other + self.mask.to(x.dtype) * (functional.relu(x) - other)).view(shape)


class MaskPressure:
    """`pixels`: how many ReLUs each mask of a layer keeps."""

    def __init__(self, masks: list[nn.Parameter], pixels: list[int], relu_budget: int) -> None:
        self.masks, self.pixels, self.relu_budget = masks, pixels, relu_budget
        self.all = sum(mask.numel() * each for mask, each in zip(masks, pixels, strict=True))
        self.weight, self.kept = torch.tensor(FIRST_WEIGHT), torch.tensor(self.all)  # nothing is read in a step
        self.averages = [mask.detach().clone() for mask in masks]

    def loss(self) -> Tensor:
        kept = [each * mask.sum() for mask, each in zip(self.masks, self.pixels, strict=True)]
        return self.weight.to(self.masks[0].device) * torch.stack(kept).sum()

    def after_step(self, share: float) -> None:
        with torch.no_grad():
            for number, mask in enumerate(self.masks):
                mask.clamp_(0, 1)
                self.averages[number] = torch.lerp(mask, self.averages[number].to(mask.device), MEMORY)
            kept = [each * (mask > THRESHOLD).sum() for mask, each in zip(self.masks, self.pixels, strict=True)]
            self.kept = torch.stack(kept).sum()
            target = self.all + (self.relu_budget - self.all) * min(1.0, share / REACHED_BY)
            self.weight = self.weight.to(self.kept.device) * torch.where(self.kept > target, GROWTH, 1 / GROWTH)

    def row(self) -> Mapping[str, Value]:
        return {"ReLUs": int(self.kept), "penalty": float(self.weight)}

    def state_dict(self) -> dict[str, Any]:
        return {"weight": self.weight, "kept": self.kept, "averages": self.averages}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.weight, self.kept = state["weight"], state["kept"]
        self.averages = list(state["averages"])


def choose_by_masks(task: Task, *, per_value: bool, squares: bool) -> Choice:
    """Learn the masks; what they leave becomes the identity, or a square."""
    method = task.settings.method
    made = {name: Masked(shape, per_value=per_value, squares=squares) for name, shape in task.layers.items()}
    network = replace_relus(task.original, made).requires_grad_(True)
    if squares:
        start_squares(task, network, {name: torch.ones(shape.channels) > 0 for name, shape in task.layers.items()})
    masks = [module.mask for module in made.values()]
    pixels = [1 if per_value else shape.height * shape.width for shape in task.layers.values()]
    pressure = MaskPressure(masks, pixels, task.relu_budget)
    steps = task.settings.search_epochs * len(task.batches())
    learn(
        task,
        network,
        task.settings.search_epochs,
        stage="masks",
        pressure=pressure,
        masks=masks,
        mask_rate=task.settings.mask_rate or 1 / (QUICKEST * max(steps, 1)),
    )
    kept = keep_largest(task.relu_budget, dict(zip(made, pressure.averages, strict=True)), pixels)
    kinds = {name: letters(own, SQUARE if squares else IDENTITY) for name, own in kept.items()}
    return Choice(task.described(kinds, method), task.reduced(kinds, network))


def keep_largest(relu_budget: int, scores: Mapping[str, Tensor], pixels: list[int]) -> dict[str, Tensor]:
    """The elements of the largest scores of all layers together that the budget holds; of equal ones the earlier."""
    flat = torch.cat([score.detach().flatten().cpu() for score in scores.values()])
    each = torch.cat([torch.full((s.numel(),), own) for s, own in zip(scores.values(), pixels, strict=True)])
    kept, left = torch.zeros(len(flat), dtype=torch.bool), relu_budget
    order = flat.argsort(descending=True, stable=True)
    for number, price in zip(order.tolist(), each[order].tolist(), strict=True):
        if price <= left:
            kept[number], left = True, left - price
    parts = kept.split([score.numel() for score in scores.values()])
    return {name: part.view(score.shape) for (name, score), part in zip(scores.items(), parts, strict=True)}
