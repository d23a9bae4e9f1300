"""`cryptonas`: CryptoNAS (Ghodsi, Veldanda, Reagen, Garg, NeurIPS 2020), without its controller.

A network of its own: layers of equally many ReLUs (balanced), none on skips (pruned), as many channels as the budget
holds (`space.macro`). Random layers are drawn, each network is briefly distilled, and the one stays that agrees with
the original most often on held-out images; it is trained from random weights.

What differs: the paper searches by ENAS, a controller that learns which layers of one supernet with shared weights do
well; here a few networks are drawn at random and each has weights of its own. Candidates are judged by agreement with
the original, and the number of layers is drawn, too.
"""

from __future__ import annotations

import random

import torch

from sphynx.errors import InputError
from sphynx.network.build import build_network
from sphynx.reduce.agreement import agreement
from sphynx.reduce.learning import learn
from sphynx.reduce.task import Choice, Task
from sphynx.space.macro import KERNELS, MacroDesign, MacroLayer
from sphynx.space.tally import Shape

CANDIDATES = 8
STAGES = 3
LAYERS = (2, 3, 4, 5)  # of each stage
SKIPS = 0.4  # the probability of each that is possible


def choose_cryptonas(task: Task) -> Choice:
    design = task.original.design
    drawn = random_networks(task.relu_budget, design.image, design.classes, CANDIDATES, task.seed)
    epochs = max(1, task.settings.search_epochs // 2)
    best: tuple[float, MacroDesign] | None = None
    for number, candidate in enumerate(drawn):
        torch.manual_seed(task.seed)
        network = build_network(candidate)
        learn(task, network, epochs, stage=f"candidate-{number}")
        found = agreement(task, network)
        if best is None or found > best[0]:
            best = found, candidate
    assert best is not None
    return Choice(best[1])


def random_networks(relu_budget: int, image: Shape, classes: int, count: int, seed: int) -> list[MacroDesign]:
    """Different networks, each with as many channels as the budget holds for its number of layers."""
    drawn: dict[MacroDesign, None] = {}
    generator = random.Random(seed)
    stages = sum(min(image.height, image.width) >> number > 1 for number in range(STAGES))
    for _ in range(100 * count):
        layers = tuple(_random_stage(generator, generator.choice(LAYERS)) for _ in range(stages))
        each = image.height * image.width * (sum(map(len, layers)) + 1)
        if relu_budget >= each and len(drawn) < count:
            network = MacroDesign(relu_budget // each, layers, image, classes, "cryptonas")
            if network.relus <= relu_budget:  # a map of odd height has a few more
                drawn[network] = None
    if not drawn:
        least = image.height * image.width * (stages * min(LAYERS) + 1)
        raise InputError(
            f"{relu_budget:,} ReLUs are fewer than one channel needs: {least:,} on {image} images",
            where="`relu_budget`",
            remedy="Raise it, or use another `method`.",
        )
    return list(drawn)


def _random_stage(generator: random.Random, layers: int) -> tuple[MacroLayer, ...]:
    return tuple(
        MacroLayer(
            generator.choice(KERNELS),
            generator.random() < 1 / 2,
            tuple(earlier for earlier in range(place - 1) if generator.random() < SKIPS),
        )
        for place in range(layers)
    )
