"""`deepreduce`: DeepReDuce (Jha, Ghodsi, Garg, Reagen, ICML 2021): stages lose their ReLUs in the order of their worth.

A stage is what has one size of map. Its criticality is how often a network with the ReLUs of this stage alone, briefly
distilled, agrees with the original on held-out images, over a power of their number. The least critical stages are
culled; the others may be thinned, which leaves every second of their ReLU layers.

What differs: criticality is agreement with the original, not accuracy. Culling and thinning are combined so that most
ReLUs remain within the budget, and stages of higher criticality keep theirs first. Reshaping, which makes the network
narrower or its maps smaller, is left out: it makes another network of the original.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise, product

from sphynx.errors import InputError
from sphynx.network.reduced import all_relus
from sphynx.reduce.agreement import agreement
from sphynx.reduce.learning import learn
from sphynx.reduce.task import Choice, Task
from sphynx.run.folder import RunFolder
from sphynx.space.reduced import IDENTITY, RELU
from sphynx.space.tally import Shape

EXPONENT = 0.07  # of the number of ReLUs
CRITICALITY = "criticality.json"
CULLED, THINNED, WHOLE = range(3)


def choose_deepreduce(task: Task) -> Choice:
    stages = stages_of(task.layers)
    file = task.out / CRITICALITY
    if task.resume and file.is_file():
        criticality: list[float] = json.loads(file.read_text())
    else:
        epochs = max(1, task.settings.search_epochs // len(stages))
        criticality = [_criticality(task, stage, epochs, number) for number, stage in enumerate(stages)]
        RunFolder(task.out).write_json(CRITICALITY, criticality)
    kept = layers_within(task.layers, stages, criticality, task.relu_budget)
    kinds = _kinds(task.layers, kept)
    return Choice(task.described(kinds, "deepreduce"), task.reduced(kinds))


def stages_of(layers: Mapping[str, Shape]) -> list[list[str]]:
    """Layers of one size of map, in the order in which they run."""
    sizes: dict[tuple[int, int], list[str]] = {}
    for name, shape in layers.items():
        sizes.setdefault((shape.height, shape.width), []).append(name)
    return list(sizes.values())


def layers_within(
    layers: Mapping[str, Shape], stages: list[list[str]], criticality: list[float], relu_budget: int
) -> set[str]:
    """The layers that keep their ReLUs: of all ways to cull and thin, the one with most ReLUs within the budget; of
    equal ones that which favours critical stages. A stage is not culled before a less critical one is."""
    order = sorted(range(len(stages)), key=lambda number: criticality[number], reverse=True)
    best: tuple[int, tuple[int, ...], set[str]] | None = None
    for ways in product((CULLED, THINNED, WHOLE), repeat=len(stages)):
        if any(before == CULLED != after for before, after in pairwise(ways)):
            continue
        kept = {name for way, number in zip(ways, order, strict=True) for name in _remaining(stages[number], way)}
        relus = sum(layers[name].size for name in kept)
        if relus <= relu_budget and kept and (best is None or (relus, ways) > best[:2]):
            best = relus, ways, kept
    if best is None:
        smallest = sum(layers[name].size for name in _remaining(stages[order[0]], THINNED))
        raise InputError(
            f"its most critical stage has {smallest:,} ReLUs where it is thinned, more than {relu_budget:,}",
            where="`relu_budget`",
            remedy="Raise it, or use another `method`: this one keeps or drops whole layers.",
        )
    return best[2]


def _remaining(stage: list[str], way: int) -> list[str]:
    return {CULLED: [], THINNED: stage[::2], WHOLE: stage}[way]


def _criticality(task: Task, stage: list[str], epochs: int, number: int) -> float:
    network = task.reduced(_kinds(task.layers, set(stage)))
    learn(task, network, epochs, stage=f"stage-{number}")
    relus = sum(task.layers[name].size for name in stage)
    return agreement(task, network) / float(relus**EXPONENT)


def _kinds(layers: Mapping[str, Shape], kept: set[str]) -> dict[str, str]:
    identities = all_relus(layers, IDENTITY)
    return {name: RELU * len(kinds) if name in kept else kinds for name, kinds in identities.items()}
