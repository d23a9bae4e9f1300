"""Which networks `sphynx bench` runs privately; `clear` has what they cost in the clear.

`--untrained` needs no training: a network of that many ReLUs, or of a given design, gets random weights. Private
inference takes the same time and bytes for any weights of the same widths, so only its accuracy is meaningless. That
the widths are those of a trained network takes care: batch norm has the statistics of the images, the classifier's
rows have mean zero, and the bits are those that `sphynx compile` finds for the trained networks of cells and streams
(rings of 31 or 32 bits, as there).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from sphynx.compiler.compile import compile_walk
from sphynx.compiler.frontend.torch_network import walk_of
from sphynx.compiler.precision import Precision
from sphynx.compiler.settings import CompileSettings
from sphynx.errors import SphynxError
from sphynx.network.build import AnyNetwork, build_network
from sphynx.program.folder import load_compiled, load_program, save_compiled
from sphynx.program.interpret import interpret
from sphynx.protocol.runnable import with_ring_for
from sphynx.space.choices import ConvStack
from sphynx.space.design import Design
from sphynx.space.files import AnyDesign, load_any_design
from sphynx.space.planner import parse_relu_budget, plan
from sphynx.space.published_cells import SPHYNX
from sphynx.space.stream import StreamDesign
from sphynx.zoo.by_name import Tell, compiled_folder
from sphynx.zoo.shipped import program_path

CALIBRATION_IMAGES = 32
DESIGN = "design.json"
# C, D and reduce positions of the paper's CIFAR-100 networks; others are planned.
UNTRAINED: dict[str, tuple[int, int, tuple[int, ...]]] = {
    "25.6k": (5, 5, (0, 1)),
    "51.2k": (5, 10, (0, 5)),
    "102.4k": (10, 10, (0, 5)),
    "230.4k": (15, 15, (2, 6)),
}
UNTRAINED_PRECISION = Precision(14, 12, 13)
UNTRAINED_STREAM_PRECISION = Precision(13, 11, 12)
PLAN_TOLERANCE = 0.02
_MEAN, _STD = 0.5, 0.25


@dataclass(frozen=True)
class Model:
    name: str
    folder: Path
    design: AnyDesign | None


def compiled_model(folder_or_name: str, tell: Tell) -> Model:
    """A folder of `sphynx compile`, or a model that comes with Sphynx.

    A design.json in the folder, or the model's own, says which network to measure in the clear.
    """
    public = program_path(folder_or_name)
    shipped = public != Path(folder_or_name)
    file = (public.parent if shipped else public) / DESIGN
    name = folder_or_name if shipped else load_program(public).name or public.name
    design = load_any_design(file) if file.is_file() else None
    return Model(name, compiled_folder(folder_or_name, tell), design)


def untrained_model(name: str, conv_stack: ConvStack, folder: Path) -> Model:
    """`name` is a number of ReLUs such as 51.2k, or the file of any design."""
    design = untrained_design(name, conv_stack)
    torch.manual_seed(0)
    network = build_network(design).double()
    pixels = np.random.default_rng(0).integers(0, 256, (CALIBRATION_IMAGES, *design.image)).astype(np.uint8)
    _settle(network, (torch.from_numpy(pixels).double() / 255 - _MEAN) / _STD)
    mean, std = ((value,) * design.image.channels for value in (_MEAN, _STD))
    precision = UNTRAINED_STREAM_PRECISION if isinstance(design, StreamDesign) else UNTRAINED_PRECISION
    settings = CompileSettings(precision=precision)
    names = tuple(f"class {number}" for number in range(design.classes))
    made = compile_walk(
        walk_of(network.eval()), mean, std, pixels, settings, class_names=names, name=network.design.name
    )
    save_compiled(folder, replace(made, program=with_ring_for(made.program, made.weights)))
    return Model(design.name, folder, design)


def untrained_design(name: str, conv_stack: ConvStack) -> AnyDesign:
    if Path(name).suffix == ".json":
        given = load_any_design(Path(name))  # with stacks of its own
        return replace(given, name=given.name or Path(name).stem)
    channels, depth, reduce_positions = UNTRAINED.get(name.lower(), (5, 5, (0, 1)))
    design = Design(SPHYNX, channels, depth, reduce_positions)
    if name.lower() not in UNTRAINED:
        design = plan(design, parse_relu_budget(name), PLAN_TOLERANCE).chosen.design
    return replace(design, conv_stack=conv_stack, name=f"{name} {conv_stack}")


@torch.no_grad()
def _settle(network: AnyNetwork, images: torch.Tensor) -> None:
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = 1.0  # the statistics are those of one batch
        if isinstance(module, nn.Linear):
            module.weight -= module.weight.mean(dim=1, keepdim=True)
            module.bias.zero_()
    network.train()
    network(images)


def question(folder: Path, batch: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Random images inside the program's ranges, and the oracle's logits for them."""
    program, weights = load_compiled(folder)
    refusal: SphynxError | None = None
    for contrast in (128, 64, 32, 16, 8, 4, 2):  # strong noise is unlike what a trained network was calibrated on
        rng = np.random.default_rng(1)
        pixels = rng.integers(128 - contrast, 128 + contrast, (batch, *program.image)).astype(np.uint8)
        try:
            return pixels, interpret(program, weights, pixels)
        except SphynxError as error:
            refusal = error
    assert refusal is not None
    raise refusal
