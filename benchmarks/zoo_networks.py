"""torchvision's networks as they come, with pictures to calibrate them by and to ask about.

Weights are random, and the pictures gratings: batch norms are estimated on them, and the last layer is fitted to them
by least squares, so that logits vary and classes are told apart. Or weights are those that zoo_train.py trained, and
the pictures CIFAR-100's. Nothing else is changed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.zoo_torchvision import CIFAR_CLASSES, MEAN, STD, untrained
from sphynx.data.images import Data, ImageSet, make_data
from sphynx.data.open import open_data
from sphynx.data.picture import cover

CLASSES = 10
FITTED = 400  # pictures
ASKED = 1000  # of CIFAR-100
BATCH = 50
RIDGE = 1.0  # of the mean square of a feature
_SEED = 0


@dataclass(frozen=True)
class Entry:
    """A row of the table: which network, at which size."""

    network: str  # as torchvision calls it
    size: int
    knees: int = 0  # of its smooth functions; 0 where it has none

    @property
    def name(self) -> str:
        return f"{self.network}-{self.size}"


ZOO = (
    Entry("squeezenet1_1", 64),
    Entry("shufflenet_v2_x1_0", 64),
    Entry("resnet18", 64),
    Entry("regnet_x_400mf", 64),
    Entry("googlenet", 64),
    Entry("mobilenet_v2", 64),
    Entry("resnet50", 64),
    Entry("vgg16_bn", 64),
    Entry("densenet121", 64),
    Entry("mobilenet_v3_small", 64, knees=8),
    Entry("regnet_y_400mf", 64, knees=32),
    Entry("efficientnet_b0", 64, knees=16),
    Entry("squeezenet1_1", 224),
    Entry("resnet18", 224),
)
# Asked for by name alone: they need more than 16 GB and hours on two cores.
LARGE = (Entry("resnet50", 224),)


def pictures(count: int, size: int, seed: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Gratings of ten directions, their classes, in random colours, under noise of several sizes."""
    drawn = np.random.default_rng(seed)
    labels = drawn.integers(CLASSES, size=count)
    angles = np.pi * (labels + drawn.uniform(-0.2, 0.2, count)) / CLASSES
    y, x = np.mgrid[:size, :size] / size
    waves = drawn.uniform(3, 6, count)[:, None, None]
    along = np.cos(angles)[:, None, None] * x + np.sin(angles)[:, None, None] * y
    grating = np.sin(2 * np.pi * (waves * along + drawn.uniform(size=(count, 1, 1))))
    image = drawn.uniform(-0.3, 0.3, (count, 3, 1, 1)) * grating[:, None] + drawn.uniform(0.3, 0.7, (count, 3, 1, 1))
    for cells, strength in ((4, 0.08), (16, 0.06), (size, 0.04)):
        noise = torch.from_numpy(drawn.normal(scale=strength, size=(count, 3, cells, cells)))
        image += functional.interpolate(noise, (size, size), mode="bilinear", align_corners=False).numpy()
    return (255 * np.clip(image, 0, 1)).astype(np.uint8), labels


def as_data(size: int) -> Data:
    """The images that networks are calibrated by, and those that they are asked about."""
    names = tuple(f"direction {number}" for number in range(CLASSES))
    train, test = (
        ImageSet(torch.from_numpy(images), torch.from_numpy(labels), names)
        for images, labels in (pictures(FITTED, size, _SEED), pictures(100, size, _SEED + 1))
    )
    return make_data("gratings", train, test, where="gratings")


def network(entry: Entry, data: Data) -> nn.Module:
    torch.manual_seed(_SEED)
    made = untrained(entry.network, CLASSES)
    with torch.no_grad():
        _estimate_norms(made, data.train.images)
        _fit_last_layer(made, data.train)
    return made.eval()


def cifar100(folder: str, size: int) -> Data:
    """Some of its pictures, enlarged: enough to calibrate by, of every class, and ASKED to ask about."""
    data = open_data(folder)
    train, test = (_enlarged(part.sample(count), size) for part, count in ((data.train, 2000), (data.test, ASKED)))
    return make_data("cifar100", train, test, where=folder)


def _enlarged(part: ImageSet, size: int) -> ImageSet:
    pictures = (Image.fromarray(image.permute(1, 2, 0).numpy()) for image in part.images)
    pixels = np.stack([np.asarray(cover(picture, size, size)).transpose(2, 0, 1) for picture in pictures])
    return ImageSet(torch.from_numpy(pixels), part.labels, part.class_names)


@dataclass(frozen=True)
class Trained:
    """Weights of zoo_train.py: which data they know, how many of the test images the float network gets right."""

    module: nn.Module
    data: str
    accuracy: float


def trained(entry: Entry, folder: Path) -> Trained | None:
    """None where the folder has none of this network."""
    found = json.loads((folder / "trained.json").read_text()).get(entry.network)
    if found is None:
        return None
    state = {name: tensor for file in found["files"] for name, tensor in load_file(folder / file).items()}
    module = untrained(entry.network, CIFAR_CLASSES)
    rest = module.load_state_dict({name: tensor.float() for name, tensor in state.items()}, strict=False)
    assert not rest.unexpected_keys and all(name.endswith("num_batches_tracked") for name in rest.missing_keys)
    return Trained(module.eval(), found["data"], found["accuracy"])


def normalised(images: Tensor) -> Tensor:
    return (images.to(torch.float32) / 255 - MEAN) / STD


def answers(module: nn.Module, images: Tensor) -> Tensor:
    with torch.no_grad():
        return torch.cat([module(normalised(part)) for part in images.split(BATCH)])


def _estimate_norms(module: nn.Module, images: Tensor) -> None:
    norms = [layer for layer in module.modules() if isinstance(layer, nn.BatchNorm2d)]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # the mean over all batches
    module.eval()
    for norm in norms:
        norm.train()
    answers(module, images)
    module.eval()


def _fit_last_layer(module: nn.Module, images: ImageSet) -> None:
    """A dense layer, or SqueezeNet's 1x1 convolution before its mean, to the classes as numbers 0 and 1."""
    last = [layer for layer in module.modules() if isinstance(layer, nn.Linear | nn.Conv2d)][-1]
    seen: list[Tensor] = []
    hook = last.register_forward_pre_hook(lambda _layer, inputs: seen.append(inputs[0].detach()))
    answers(module, images.images)
    hook.remove()
    features = torch.cat([part.flatten(2).mean(2) if part.dim() == 4 else part for part in seen]).double()
    centre = features.mean(0)
    wanted = functional.one_hot(images.labels.long(), CLASSES).double()
    centred = features - centre
    gram = centred.T @ centred
    damping = RIDGE * gram.diagonal().mean() * torch.eye(len(gram), dtype=torch.float64)
    weights = torch.linalg.solve(gram + damping, centred.T @ (wanted - wanted.mean(0))).T
    last.weight.copy_(weights.reshape(last.weight.shape))
    assert last.bias is not None
    last.bias.copy_(wanted.mean(0) - weights @ centre)
