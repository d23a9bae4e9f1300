"""A small network with ReLUs that are known to be useless, and what is asked of methods about it.

In every second channel of its rectified layers batch norm shifts all values far above zero: there a ReLU is the
identity. The others cut their values in half around zero. One layer is shifted as a whole. Nothing else is special
about the weights, which are random, nor about the images, which are noise.
"""

from pathlib import Path
from typing import Any

import torch
from torch import nn

from sphynx.data.images import Data, ImageSet, make_data
from sphynx.network.stream import StreamBlock, StreamNetwork
from sphynx.reduce.settings import ReduceSettings
from sphynx.reduce.task import Task
from sphynx.space.reduced import IDENTITY, ReducedDesign
from sphynx.space.stream import Stage, StreamDesign
from sphynx.space.tally import Shape
from sphynx.train.recipe import load_recipe

DESIGN = StreamDesign((Stage(8, (6, 6)), Stage(12, (8,))), Shape(1, 8, 8), 3, borders="zero", name="planted")
FAR = 6.0  # deviations
NEEDED = {"stages.0.0.to_relus.2": "ririri", "stages.0.1.to_relus.2": "iiiiii", "stages.1.0.to_relus.2": "riririri"}
USEFUL_RELUS, ALL_RELUS = 3 * 16 + 4 * 4, 12 * 16 + 8 * 4
LOUDNESS = 8.0  # of the head: otherwise random logits hardly differ, and nothing is worth learning


def noise(n: int, seed: int) -> ImageSet:
    generator = torch.Generator().manual_seed(seed)
    images = torch.randint(0, 256, (n, 1, 8, 8), dtype=torch.uint8, generator=generator)
    return ImageSet(images, torch.arange(n) % 3, ("a", "b", "c"))


def noisy_data() -> Data:
    return make_data("noise", noise(120, 0), noise(30, 1), where="noise", mirrored=False)


def planted_network() -> StreamNetwork:
    torch.manual_seed(0)
    network, data = StreamNetwork(DESIGN), noisy_data()
    blocks = {f"{name}.to_relus.2": block for name, block in network.named_modules() if isinstance(block, StreamBlock)}
    with torch.no_grad():
        network.head.weight *= LOUDNESS
        for layer, kinds in NEEDED.items():
            shifted = torch.tensor([kind == IDENTITY for kind in kinds])
            norm = blocks[layer].to_relus[1]
            assert isinstance(norm, nn.BatchNorm2d)
            norm.bias[shifted] += FAR
        network.train()
        for _ in range(60):
            network((data.train.images / 255 - data.mean[0]) / data.std[0])
    return network.eval()


def planted_task(out: Path, relu_budget: int = USEFUL_RELUS, **settings: Any) -> Task:
    recipe = load_recipe("distil-small", {"batch_size": 27})
    return Task(planted_network(), noisy_data(), relu_budget, ReduceSettings(**settings), recipe, out)


def letters_of(design: object) -> dict[str, str]:
    assert isinstance(design, ReducedDesign)
    return {layer.layer: layer.kinds for layer in design.layers}
