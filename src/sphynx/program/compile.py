"""The whole way from a trained network to a program, as `sphynx compile` goes: choose cuts, fuse, quantise."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from sphynx.data.images import ImageSet
from sphynx.errors import InputError
from sphynx.network.build import AnyNetwork, as_designed
from sphynx.program.choose import choose_cuts
from sphynx.program.convolve import Array
from sphynx.program.files import save_program
from sphynx.program.quantise import Precision, Quantised, quantise
from sphynx.program.trace import trace
from sphynx.program.weights import save_weights

CALIBRATION_IMAGES = 200
_SEED = 0


def compile_network(
    network: AnyNetwork,
    mean: tuple[float, ...],
    std: tuple[float, ...],
    calibration: Array,
    precision: Precision = Precision(),
    *,
    class_names: tuple[str, ...] = (),
) -> Quantised:
    """`calibration` are uint8 images like those that will be asked about."""
    design = network.design
    if class_names and len(class_names) != design.classes:
        raise InputError(
            f"it has {len(class_names)} classes, the network tells {design.classes} apart",
            where="calibration data",
            remedy="Give the data that the network was trained on.",
        )
    with torch.no_grad():
        plain = as_designed(network)
        cuts = choose_cuts(lambda cuts: trace(plain, mean, std, cuts=cuts, outline=True), precision)
        fused = trace(plain, mean, std, cuts=cuts)
    return quantise(fused, calibration, precision, class_names=class_names, name=design.name)


def calibration_images(images: ImageSet, count: int = CALIBRATION_IMAGES) -> Array:
    """Some of the images, spread over all of them, the same ones every time."""
    chosen = np.random.default_rng(_SEED).permutation(len(images))[:count]
    picked: Array = images.images[torch.from_numpy(np.sort(chosen))].cpu().numpy()
    return picked


def save_compiled(folder: Path, compiled: Quantised) -> None:
    """The secret first: a folder that has a program also has its weights."""
    folder.mkdir(parents=True, exist_ok=True)
    save_weights(folder, compiled.program, compiled.weights)
    save_program(folder, compiled.program)
