"""Small models as the package has them: a trained network's files, and its program without weights."""

from pathlib import Path

import numpy as np

from sphynx.compiler.compile import compile_walk
from sphynx.compiler.frontend.torch_network import walk_of
from sphynx.compiler.precision import Precision
from sphynx.compiler.quantise import Quantised
from sphynx.compiler.settings import CompileSettings
from sphynx.data.open import open_data
from sphynx.network.stored import load_normalisation
from sphynx.network.trained import load_model, save_model, save_normalisation
from sphynx.program.cost.deployment import Deployment
from sphynx.program.folder import save_compiled
from sphynx.space.cell import cell
from sphynx.space.choices import ConvStack
from sphynx.space.design import Design
from sphynx.space.genotype import Genotype
from sphynx.space.tally import Shape
from tests.compiler.networks import random_network

# Quicker to compile than the published cells.
CELLS = Genotype(cell("conv3 0, skip 1", "dil3 1, avg_pool 0"), cell("conv3 0, skip 1", "skip 0, avg_pool 1"))


def save_random_model(
    folder: Path, stack: ConvStack = "single", *, cells: Genotype = CELLS, depth: int = 2, seed: int = 0
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    design = Design(cells, 2, depth, (1,), Shape(1, 8, 8), 10, conv_stack=stack)
    save_model(folder, random_network(design, seed).float(), compact=True)
    save_normalisation(folder, open_data("digits"))


def compile_model(folder: Path, precision: Precision = Precision(), deployment: Deployment = Deployment()) -> Quantised:
    network, (mean, std) = load_model(folder), load_normalisation(folder)
    images = np.random.default_rng(0).integers(0, 256, (16, *network.design.image)).astype(np.uint8)
    settings = CompileSettings(precision=precision, deployment=deployment)
    made = compile_walk(walk_of(network), mean, std, images, settings, name=network.design.name)
    save_compiled(folder / "program", made, derivable=True)
    return made
