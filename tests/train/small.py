"""The smallest network and data that training is tested on."""

import dataclasses
from pathlib import Path
from typing import Any

import torch

from sphynx.data.images import Data, ImageSet, make_data
from sphynx.run.progress import QUIET
from sphynx.space.cell import cell
from sphynx.space.design import Design
from sphynx.space.genotype import Genotype
from sphynx.space.tally import Shape
from sphynx.train.job import Job
from sphynx.train.recipe import Recipe, load_recipe

# Every operation, and an edge from a node to the next.
CELLS = Genotype(cell("conv3 0, skip 1", "avg_pool 2, dil3 0"), cell("conv3 0, dil3 1", "skip 2, avg_pool 1"))
DESIGN = Design(CELLS, channels=2, depth=2, reduce_positions=(1,), image=Shape(1, 4, 4), classes=3, name="small")


def stripes(n: int, seed: int) -> ImageSet:
    """Class k is bright in column k, over noise: easy to learn."""
    generator = torch.Generator().manual_seed(seed)
    images = torch.randint(0, 120, (n, 1, 4, 4), dtype=torch.uint8, generator=generator)
    labels = torch.arange(n) % 3
    images[torch.arange(n), 0, :, labels] += 130
    return ImageSet(images, labels, ("left", "middle", "right"))


def data() -> Data:
    return dataclasses.replace(make_data("stripes", stripes(48, 0), stripes(30, 1), where="stripes"), mirrored=False)


def recipe(**overrides: Any) -> Recipe:
    values = {"epochs": 3, "batch_size": 12, "crop": False, "drop_path": 0.2, **overrides}
    return load_recipe("smoke", values)


def job(out: Path, **changes: Any) -> Job:
    overrides = {name: changes.pop(name) for name in list(changes) if name in Recipe.__dataclass_fields__}
    return dataclasses.replace(Job(DESIGN, data(), recipe(**overrides), out, voice=QUIET), **changes)
