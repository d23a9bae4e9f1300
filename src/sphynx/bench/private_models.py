"""Which networks `sphynx bench private` measures, and what they cost in the clear: torch fp32, not fused.

`--untrained` needs no training: a published design gets random weights and is compiled with random images. Private
inference takes the same time and bytes for any weights, so only its accuracy is meaningless.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from sphynx.bench.machine import available_cores
from sphynx.errors import InputError, SphynxError
from sphynx.network.backend import fast_convolutions
from sphynx.network.build import build_network
from sphynx.program.compile import compile_network, save_compiled
from sphynx.program.files import load_program
from sphynx.program.interpret import interpret
from sphynx.program.weights import load_weights
from sphynx.space.design import Design
from sphynx.space.files import AnyDesign, load_any_design
from sphynx.space.operations import ConvStack
from sphynx.space.published import SPHYNX
from sphynx.space.shipped import program_path

PLAINTEXT_THREADS = 2
PLAINTEXT_RUNS, WARMUP_RUNS = 40, 3  # the first three are not counted
CALIBRATION_IMAGES = 32
DESIGN = "design.json"
# C, D and reduce positions of the paper's CIFAR-100 networks.
UNTRAINED: dict[str, tuple[int, int, tuple[int, ...]]] = {
    "25.6k": (5, 5, (0, 1)),
    "51.2k": (5, 10, (0, 5)),
    "102.4k": (10, 10, (0, 5)),
}
_MEAN, _STD = (0.5, 0.5, 0.5), (0.25, 0.25, 0.25)


@dataclass(frozen=True)
class Model:
    name: str
    folder: Path
    design: AnyDesign | None


def compiled_model(folder_or_name: str) -> Model:
    """A folder of `sphynx compile`, or a model that comes with Sphynx.

    A design.json in the folder, or the model's own, says which network to measure in the clear.
    """
    folder = program_path(folder_or_name)
    shipped = folder != Path(folder_or_name)
    file = (folder.parent if shipped else folder) / DESIGN
    name = folder_or_name if shipped else load_program(folder).name or folder.name
    return Model(name, folder, load_any_design(file) if file.is_file() else None)


def untrained_model(name: str, conv_stack: ConvStack, folder: Path) -> Model:
    if name not in UNTRAINED:
        raise InputError(
            f"there is no untrained network {name!r}", where="--untrained", remedy=f"Use {', '.join(UNTRAINED)}."
        )
    channels, depth, reduce_positions = UNTRAINED[name]
    design = Design(SPHYNX, channels, depth, reduce_positions, conv_stack=conv_stack, name=f"{name} {conv_stack}")
    torch.manual_seed(0)
    network = build_network(design).eval()
    pixels = np.random.default_rng(0).integers(0, 256, (CALIBRATION_IMAGES, *design.image)).astype(np.uint8)
    save_compiled(folder, compile_network(network.double(), _MEAN, _STD, pixels))
    return Model(design.name, folder, design)


def question(folder: Path, batch: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Random images inside the program's ranges, and the oracle's logits for them."""
    program = load_program(folder)
    weights = load_weights(folder, program)
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


@dataclass(frozen=True)
class Plaintext:
    seconds: float
    cpu_seconds: float  # on one thread, where none waits for another: what other work on the machine does not change


def plaintext_time(design: AnyDesign, batch: int) -> Plaintext:
    """Medians of a forward pass, for the memory layout and the kernels of torch that are fastest here."""
    network: torch.nn.Module = build_network(design).float().eval()
    images = torch.randn(batch, *design.image)
    before = torch.get_num_threads()
    try:
        return Plaintext(
            _best_median(network, images, min(PLAINTEXT_THREADS, available_cores()), time.perf_counter),
            _best_median(network, images, 1, time.process_time),
        )
    finally:
        torch.set_num_threads(before)


def _best_median(network: torch.nn.Module, images: torch.Tensor, threads: int, clock: Callable[[], float]) -> float:
    torch.set_num_threads(threads)
    medians = []
    for layout in (torch.contiguous_format, torch.channels_last):
        laid_out = network.to(memory_format=layout)  # type: ignore[call-overload]  # missing in torch's types
        for kernels in (nullcontext(), fast_convolutions(images.device)):
            with torch.inference_mode(), kernels:
                seconds = [_seconds(laid_out, images.to(memory_format=layout), clock) for _ in range(PLAINTEXT_RUNS)]
            medians.append(statistics.median(seconds[WARMUP_RUNS:]))
    return min(medians)


def _seconds(network: torch.nn.Module, images: torch.Tensor, clock: Callable[[], float]) -> float:
    started = clock()
    network(images)
    return clock() - started
