"""Networks from elsewhere to be reduced: a file or a torch module becomes a graph that can be trained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from sphynx.api.data import as_data
from sphynx.data.images import Data, ImageSet
from sphynx.data.samples import open_samples
from sphynx.errors import InputError
from sphynx.network.graph import GraphNetwork
from sphynx.network.trained import TrainedNetwork
from sphynx.space.tally import Shape

if TYPE_CHECKING:
    from torch import nn

    from sphynx.compiler.frontend.readable import Readable

TEST_SHARE, SPLIT_SEED = 0.1, 0
SETTLED_IMAGES = 512
BATCH = 256
PIXEL_STEPS = 255  # a graph traced with this inverse deviation reads what it is given as it is


@dataclass(frozen=True)
class Normalisation:
    """How the network's images were normalised, as for `compile_network`."""

    mean: Sequence[float] | float | None = None
    std: Sequence[float] | float | None = None


def open_given(
    network: nn.Module | Path, data: Data | str | Path, normalisation: Normalisation
) -> tuple[TrainedNetwork, Data]:
    """Read the network, and the images that it will be taught by: a data set, or pictures without labels, each of
    which then has the class that the network gives it."""
    if isinstance(network, Path):
        readable = _read_file(network, normalisation)
        loose = None if isinstance(data, Data) else open_samples(str(data), readable.outline.image, 0)
        if loose is not None:
            pixels = torch.from_numpy(loose.images)
            module = _trainable(readable, pixels)
            return _trained(readable, module, images := _answered(readable, module, pixels)), images
    images = as_data(data)
    if not isinstance(network, Path):
        readable = _read_module(network, Shape(*images.image), normalisation)
    return _trained(readable, _trainable(readable, images.train.images), images), images


def _trained(readable: Readable, module: GraphNetwork, data: Data) -> TrainedNetwork:
    return TrainedNetwork(module.design.name, module, readable.mean, readable.std, data.train.class_names, data.source)


def _read_file(path: Path, normalisation: Normalisation) -> Readable:
    from sphynx.compiler.frontend.elsewhere import read_exported, read_onnx
    from sphynx.compiler.settings import CompileSettings

    read = read_onnx if path.suffix.lower() == ".onnx" else read_exported
    return read(path, CompileSettings(mean=normalisation.mean, std=normalisation.std))


def _read_module(module: nn.Module, image: Shape, normalisation: Normalisation) -> Readable:
    from sphynx.compiler.frontend.elsewhere import read_torch
    from sphynx.compiler.settings import CompileSettings

    return read_torch(module, image, CompileSettings(mean=normalisation.mean, std=normalisation.std))


def _trainable(readable: Readable, pixels: Tensor) -> GraphNetwork:
    """The network with a batch norm before each ReLU, which at first changes nothing."""
    from sphynx.compiler.frontend.graph import network_of

    image = readable.outline.image
    if tuple(pixels.shape[1:]) != tuple(image):
        raise InputError(
            f"the network reads images of {image}, these are {'x'.join(map(str, pixels.shape[1:]))}",
            where="`data`",
            remedy="Give images of that size.",
        )
    as_it_is = ((0.0,) * image.channels, (1 / PIXEL_STEPS,) * image.channels)
    module = network_of(readable.walk(*as_it_is, outline=False), readable.name or "network")
    module.settle(_normalised(readable, pixels[:SETTLED_IMAGES]))
    return module


def _normalised(readable: Readable, pixels: Tensor) -> Tensor:
    mean, std = (torch.tensor(own).view(-1, 1, 1) for own in (readable.mean, readable.std))
    return (pixels.float() / 255 - mean) / std


@torch.no_grad()
def _answered(readable: Readable, module: GraphNetwork, pixels: Tensor) -> Data:
    """Pictures with the classes that the network gives them; a tenth of them is kept for the test."""
    answers = [module(_normalised(readable, part)).argmax(1) for part in pixels.split(BATCH)]
    names = readable.class_names or tuple(str(number) for number in range(module.design.classes))
    train, test = ImageSet(pixels, torch.cat(answers), names).split(TEST_SHARE, SPLIT_SEED)
    if not len(test):
        raise InputError(f"{len(pixels)} pictures are too few", where="`data`", remedy="Give some hundreds at least.")
    return Data(module.design.name, train, test, readable.mean, readable.std, mirrored=False)
