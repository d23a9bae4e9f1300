"""`delphi`: DELPHI's planner (Mishra, Lehmkuhl, Srinivasan, Zheng, Popa, USENIX Security 2020): layers become squares.

Greedy: of all layers with ReLUs the one becomes squares whose change disturbs the answers least for each ReLU that it
saves, then the network is distilled for a while; and so on, until the budget is met.

What differs: the budget is one of ReLUs, where the paper searches the most squares above an accuracy floor, by
population-based training. Parabolas begin next to the ReLUs they replace and their coefficients are learned; gradients
are clipped, as there.
"""

from __future__ import annotations

import json

import torch
from torch import nn

from sphynx.network.reduced import all_relus
from sphynx.reduce.learning import learn
from sphynx.reduce.parabola import start_squares
from sphynx.reduce.sensitivity import measure_sensitivity
from sphynx.reduce.task import Choice, Task
from sphynx.run.folder import RunFolder
from sphynx.space.reduced import RELU, SQUARE

PLAN = "plan.json"


def choose_delphi(task: Task) -> Choice:
    kinds = all_relus(task.layers)
    network: nn.Module = task.reduced(kinds)
    sizes = {name: shape.size for name, shape in task.layers.items()}
    most = len(sizes)
    for number in range(1, most + 1):
        rectified = [name for name, own in kinds.items() if RELU in own]
        left = sum(sizes[name] for name in rectified)
        if left <= task.relu_budget:
            break
        chosen = _least_disturbing(task, network, rectified, sizes, f"layer-{number}")
        kinds[chosen] = SQUARE * len(kinds[chosen])
        network = task.reduced(kinds, network)
        start_squares(task, network, {f"inner.{chosen}": torch.ones(len(kinds[chosen])) > 0})
        first, last = (round(task.settings.search_epochs * part / most) for part in (number - 1, number))
        learn(task, network, last - first, stage=f"layer-{number}")
    return Choice(task.described(kinds, "delphi"), task.reduced(kinds, network))


def _least_disturbing(task: Task, network: nn.Module, rectified: list[str], sizes: dict[str, int], stage: str) -> str:
    """A resumed run keeps what it chose."""
    file = task.out / stage / PLAN
    if task.resume and file.is_file():
        return str(json.loads(file.read_text()))
    names = {name: f"inner.{name}" for name in rectified}
    measured = measure_sensitivity(task, network, names, (SQUARE,), over="layers")
    chosen = min(rectified, key=lambda name: float(measured[name][SQUARE]) / sizes[name])
    RunFolder(file.parent).write_json(PLAN, chosen)
    return chosen
