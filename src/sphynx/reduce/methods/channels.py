"""`channels`, our own: each rectified channel becomes a ReLU, the identity, nothing, or a square where that is cheaper.

In rounds on the way to the budget: measure how much the answers suffer from each kind in each channel (`sensitivity`),
choose all kinds at once by the least of

    suffering + L (ReLUs of the channel) + L (other_prices) (price of the channel beside ReLUs)

with the one multiplier L that meets the round's budget (the budgets fall geometrically), then distil for a while, so
that the next round measures a network that has settled. Choices are free in every round: a ReLU may come back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from sphynx.network.reduced import all_relus
from sphynx.reduce.learning import learn
from sphynx.reduce.parabola import start_squares
from sphynx.reduce.prices import RELATIVE_PRICES, kinds_worth
from sphynx.reduce.sensitivity import Sensitivity, measure_sensitivity
from sphynx.reduce.task import Choice, Task
from sphynx.run.folder import RunFolder
from sphynx.space.reduced import RELU, SQUARE
from sphynx.space.tally import Shape

PLAN = "plan.json"
DOUBLINGS, BISECTIONS = 400, 60


def choose_channels(task: Task) -> Choice:
    settings = task.settings
    kinds = all_relus(task.layers)
    network: nn.Module = task.reduced(kinds)
    for number in range(1, settings.rounds + 1):
        share = number / settings.rounds
        allowed = round(task.all_relus * (task.relu_budget / task.all_relus) ** share)
        before, kinds = kinds, _make_plan(task, network, allowed, f"round-{number}")
        network = task.reduced(kinds, network)
        if fresh := _new_squares(before, kinds):
            start_squares(task, network, fresh)
        first, last = (round(settings.search_epochs * part / settings.rounds) for part in (number - 1, number))
        learn(task, network, last - first, stage=f"round-{number}")
    design = task.described(kinds, "channels")
    return Choice(design, task.reduced(kinds, network))


def _make_plan(task: Task, network: nn.Module, allowed: int, stage: str) -> dict[str, str]:
    """A resumed run keeps the plan that it began the round with."""
    file = task.out / stage / PLAN
    if task.resume and file.is_file():
        kept: dict[str, str] = json.loads(file.read_text())
        return kept
    worth = kinds_worth(task.settings.backend)
    measured = measure_sensitivity(task, network, {name: f"inner.{name}" for name in task.layers}, worth)
    prices = {kind: task.settings.other_prices * RELATIVE_PRICES[task.settings.backend][kind] for kind in worth}
    planned = plan_channels(task.layers, measured, prices, allowed)
    RunFolder(file.parent).write_json(PLAN, planned)
    return planned


def plan_channels(
    layers: Mapping[str, Shape], measured: Sensitivity, prices: Mapping[str, float], relu_budget: int
) -> dict[str, str]:
    """The kinds that suffer least at the smallest multiplier that meets the budget; what is left of that is spent."""
    kinds = tuple(prices)
    pixels = {name: shape.height * shape.width for name, shape in layers.items()}
    suffering = {name: torch.stack([measured[name][kind] for kind in kinds]) for name in layers}
    asked = torch.tensor([prices[kind] if kind != RELU else 1.0 for kind in kinds], dtype=torch.float64)

    def chosen(multiplier: float) -> dict[str, Tensor]:
        return {name: (own + multiplier * pixels[name] * asked[:, None]).argmin(0) for name, own in suffering.items()}

    def relus(choice: Mapping[str, Tensor]) -> int:
        return sum(int((own == kinds.index(RELU)).sum()) * pixels[name] for name, own in choice.items())

    choice = chosen(_least(lambda multiplier: relus(chosen(multiplier)) <= relu_budget))
    left = relu_budget - relus(choice)
    others = [number for number, kind in enumerate(kinds) if kind != RELU]
    gains = sorted(
        (
            (float(gain) / pixels[name], name, channel)
            for name, own in suffering.items()
            for channel, gain in enumerate(own[others].min(0).values - own[kinds.index(RELU)])
            if choice[name][channel] != kinds.index(RELU) and gain > 0
        ),
        reverse=True,
    )
    for _, name, channel in gains:
        if pixels[name] <= left:
            choice[name][channel] = kinds.index(RELU)
            left -= pixels[name]
    return {name: "".join(kinds[number] for number in own.tolist()) for name, own in choice.items()}


def _least(meets: Callable[[float], bool]) -> float:
    """The smallest multiplier that meets the budget, nearly."""
    high = 1e-30
    for _ in range(DOUBLINGS):
        if meets(high):
            break
        high *= 2
    low = 0.0
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (low, middle) if meets(middle) else (middle, high)
    return high


def _new_squares(before: Mapping[str, str], now: Mapping[str, str]) -> dict[str, Tensor]:
    fresh = {
        f"inner.{name}": torch.tensor([new == SQUARE != old for old, new in zip(before[name], kinds, strict=True)])
        for name, kinds in now.items()
    }
    return {name: channels for name, channels in fresh.items() if channels.any()}
