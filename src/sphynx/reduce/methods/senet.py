"""`senet`: SENet (Kundu, Lu, Zhang, Liu, Beerel, ICLR 2023): layers get budgets by their sensitivity, values by rank.

The dense network is measured (`sensitivity`): a layer's share of the budget is that of its sensitivity in all, and
within it the values that disturb the answers most as identities keep their ReLUs. Then the network learns from the
original's answers and, normalised, from its activation maps.

What differs: the sensitivity is the second order of the answers' divergence, where the paper prunes weights and counts
what remains of each layer; and values are ranked by it in the dense network, where the paper learns masks beside it.
Maps are matched in the method's own epochs, not in the training that follows.
"""

from __future__ import annotations

import json
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from sphynx.network.reduced import letters
from sphynx.reduce.learning import learn
from sphynx.reduce.masks import keep_largest
from sphynx.reduce.sensitivity import measure_sensitivity
from sphynx.reduce.task import Choice, Task
from sphynx.run.folder import RunFolder
from sphynx.space.reduced import IDENTITY

PLAN = "plan.json"
MAPS_WEIGHT = 100.0  # of the distance of normalised activation maps


def choose_senet(task: Task) -> Choice:
    kinds = _make_plan(task)
    network = task.reduced(kinds)
    matching = _Matching(task, network)
    try:
        learn(task, network, task.settings.search_epochs, stage="maps", extra_loss=matching.loss)
    finally:
        matching.end()
    return Choice(task.described(kinds, "senet"), task.reduced(kinds, network))


def _make_plan(task: Task) -> dict[str, str]:
    file = task.out / PLAN
    if task.resume and file.is_file():
        kept: dict[str, str] = json.loads(file.read_text())
        return kept
    dense = task.reduced({name: "r" * shape.channels for name, shape in task.layers.items()})
    names = {name: f"inner.{name}" for name in task.layers}
    measured = measure_sensitivity(task, dense, names, (IDENTITY,), over="values")
    scores = {name: own[IDENTITY] for name, own in measured.items()}
    budgets = layer_budgets(task.relu_budget, scores)
    planned = {name: letters(keep_largest(budgets[name], {name: own}, [1])[name]) for name, own in scores.items()}
    RunFolder(task.out).write_json(PLAN, planned)
    return planned


def layer_budgets(relu_budget: int, scores: dict[str, Tensor]) -> dict[str, int]:
    """Shares in proportion to each layer's sum of scores, none above the number of values that matter at all; what that
    leaves over is shared again."""
    most = {name: int((score > 0).sum()) for name, score in scores.items()}
    sums = {name: float(score.sum()) for name, score in scores.items()}
    budgets = dict.fromkeys(scores, 0)
    left = min(relu_budget, sum(most.values()))
    while left:
        open_layers = [name for name in scores if budgets[name] < most[name]]
        total = sum(sums[name] for name in open_layers)
        shared = 0
        for name in open_layers:
            part = min(most[name] - budgets[name], int(left * sums[name] / total))
            budgets[name], shared = budgets[name] + part, shared + part
        if not shared:  # the last few, to the most sensitive
            name = max(open_layers, key=lambda layer: sums[layer])
            budgets[name], shared = budgets[name] + 1, 1
        left -= shared
    return budgets


class _Matching:
    """Keeps the activation maps of the original and of the network as they run, and compares them."""

    def __init__(self, task: Task, network: nn.Module) -> None:
        self.maps: tuple[dict[str, Tensor], dict[str, Tensor]] = ({}, {})
        self.hooks = []
        for kept, module, prefix in ((self.maps[0], task.original, ""), (self.maps[1], network, "inner.")):
            for name in task.layers:

                def keep(_m: nn.Module, _x: Any, y: Tensor, kept: dict[str, Tensor] = kept, name: str = name) -> None:
                    kept[name] = y

                self.hooks.append(module.get_submodule(prefix + name).register_forward_hook(keep))

    def loss(self, _x: Tensor) -> Tensor:
        original, own = self.maps
        distances = [
            (functional.normalize(own[name].float().flatten(1)) - functional.normalize(map_.float().flatten(1)))
            .square()
            .mean()
            for name, map_ in original.items()
        ]
        return MAPS_WEIGHT * torch.stack(distances).mean()

    def end(self) -> None:
        for hook in self.hooks:
            hook.remove()
