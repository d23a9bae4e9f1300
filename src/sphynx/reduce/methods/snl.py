"""`snl`: Selective Network Linearization (Cho, Joshi, Garg, Reagen, Hegde, ICML 2022).

Every value of a rectified map has a mask c, y = c ReLU(x) + (1 - c) x, which learns together with the weights under a
penalty on the sum of all c. The largest masks become ReLUs, as many as the budget has, the rest identities; then the
network is trained on.

What differs: the penalty's weight follows a falling target step by step, up and down, where the paper lets it grow
after epochs in which too few masks fell; so the number of epochs is known before. Masks have a learning rate of their
own and are kept between 0 and 1; what they were lately, on average, is ranked. The original's answers alone teach, also
while masks are learned.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from sphynx.network.reduced import letters, replace_relus
from sphynx.reduce.learning import learn
from sphynx.reduce.task import Choice, Task
from sphynx.run.progress import Value

THRESHOLD = 0.01  # a mask below counts as gone
FIRST_WEIGHT, GROWTH = 1e-5, 1.05  # of the penalty
MEMORY = 0.95  # of the average, for each step
REACHED_BY = 0.8  # of the steps: then the target is the budget
QUICKEST = 0.1  # of the steps: what a mask takes from 1 to 0 where no rate is given


class ValueMask(nn.Module):
    """In the place of a ReLU."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.mask = nn.Parameter(torch.ones(shape))

    def forward(self, x: Tensor) -> Tensor:
        mask = self.mask.to(x.dtype).view(self.mask.shape[: x.ndim - 1])
        return x + mask * (functional.relu(x) - x)


class MaskPressure:
    """A penalty on the sum of masks, whose weight follows a target that falls to the budget."""

    def __init__(self, masks: list[nn.Parameter], relu_budget: int) -> None:
        self.masks, self.relu_budget = masks, relu_budget
        self.all = sum(mask.numel() for mask in masks)
        self.weight, self.kept = FIRST_WEIGHT, self.all
        self.averages = [mask.detach().clone() for mask in masks]

    def loss(self) -> Tensor:
        return self.weight * torch.stack([mask.sum() for mask in self.masks]).sum()

    def after_step(self, share: float) -> None:
        with torch.no_grad():
            for number, mask in enumerate(self.masks):
                mask.clamp_(0, 1)
                self.averages[number] = torch.lerp(mask, self.averages[number].to(mask.device), MEMORY)
            self.kept = int(torch.stack([(mask > THRESHOLD).sum() for mask in self.masks]).sum())
        target = self.all + (self.relu_budget - self.all) * min(1.0, share / REACHED_BY)
        self.weight *= GROWTH if self.kept > target else 1 / GROWTH

    def row(self) -> Mapping[str, Value]:
        return {"ReLUs": self.kept, "penalty": self.weight}

    def state_dict(self) -> dict[str, Any]:
        return {"weight": self.weight, "kept": self.kept, "averages": self.averages}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.weight, self.kept, self.averages = state["weight"], state["kept"], list(state["averages"])


def choose_snl(task: Task) -> Choice:
    made = {name: ValueMask(shape) for name, shape in task.layers.items()}
    network = replace_relus(task.original, made).requires_grad_(True)
    masks = [module.mask for module in made.values()]
    steps = task.settings.search_epochs * len(task.batches())
    pressure = MaskPressure(masks, task.relu_budget)
    learn(
        task,
        network,
        task.settings.search_epochs,
        stage="masks",
        pressure=pressure,
        masks=masks,
        mask_rate=task.settings.mask_rate or 1 / (QUICKEST * max(steps, 1)),
    )
    kept = largest(task.relu_budget, dict(zip(made, pressure.averages, strict=True)))
    kinds = {name: letters(own) for name, own in kept.items()}
    return Choice(task.described(kinds, "snl"), task.reduced(kinds, network))


def largest(count: int, scores: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Which elements are among the `count` largest of all layers together; of equal ones the earlier."""
    flat = torch.cat([score.detach().flatten().cpu() for score in scores.values()])
    kept = torch.zeros(len(flat), dtype=torch.bool)
    kept[flat.argsort(descending=True, stable=True)[:count]] = True
    parts = kept.split([score.numel() for score in scores.values()])
    return {name: part.view(score.shape) for (name, score), part in zip(scores.items(), parts, strict=True)}
