"""Designs of networks that are quick to compile and to ask: grey pictures of 8x8, few channels."""

from pathlib import Path

from sphynx.space.cell import cell
from sphynx.space.design import Design
from sphynx.space.genotype import Genotype
from sphynx.space.tally import Shape


def small_design(depth: int) -> Design:
    """Its cells have 64 ReLUs each."""
    cells = Genotype(cell("conv3 0, skip 1"), cell("skip 0, avg_pool 1"))
    return Design(cells, 1, depth, (1,), Shape(1, 8, 8), 10, conv_stack="pad_once")


def small_file(folder: Path, name: str, depth: int) -> str:
    """As `--untrained` and `--sizes` take it."""
    file = folder / f"{name}.json"
    small_design(depth).save(file)
    return str(file)
