"""Random small networks: the same one for the same seed. One column, one row, square or oblong; few layers, any order.

Weights are drawn so that answers vary from image to image, as those of a trained network do.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from random import Random

import numpy as np
import torch
from torch import nn

from sphynx.data.images import Data, ImageSet, make_data
from sphynx.space.tally import Shape
from tests.compiler.frontend.torch_modules import Call
from tests.fuzz_networks.layers import LAYERS, convolution, rarely

IMAGES = 12  # that a network is calibrated by and judged on
MOST_LAYERS = 4  # before the last ones, which are dense
LEAST_DIFFERENCE = 1e-4  # between the answers to two images, relative to their size
MOST_ELEMENTS = 800  # of a map; a few networks have as many as cross every limit of a map's form
WIDE_ELEMENTS = 12_000
ENDS = (nn.Softmax, nn.LogSoftmax)


@dataclass(frozen=True, eq=False)
class Drawn:
    seed: int
    module: nn.Module
    image: Shape
    classes: int
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def pictures(self) -> Data:
        """Noise of varying brightness and contrast."""
        random = np.random.default_rng(self.seed)
        light, contrast = (random.uniform(low, high, (IMAGES, 1, 1, 1)) for low, high in ((64, 192), (20, 120)))
        noise = light + contrast * random.uniform(-1, 1, (IMAGES, *self.image))
        pixels = torch.from_numpy(np.clip(noise, 0, 255).astype(np.uint8))
        images = ImageSet(pixels, torch.arange(IMAGES) % self.classes, tuple(map(str, range(self.classes))))
        return make_data("noise", images, images, where="noise")


def draw(seed: int) -> Drawn:
    """The first network of this seed whose answers vary from image to image at all."""
    for attempt in count():
        random = Random(f"{seed}.{attempt}")
        drawn = _draw(random, seed)
        images = (torch.rand(2, 1, *drawn.image) - drawn.mean[0]) / drawn.std[0]
        with torch.no_grad():
            first, second = map(drawn.module, images)
        if (first - second).abs().max() > LEAST_DIFFERENCE * first.abs().max():
            return drawn
    raise AssertionError


def _draw(random: Random, seed: int) -> Drawn:
    torch.manual_seed(random.getrandbits(32))
    wide = rarely(random, 0.02)
    image, classes = _image(random, wide), random.randint(2, 6)
    layers: list[nn.Module] = []
    x, most = torch.rand(1, *image), MOST_ELEMENTS
    if wide:
        layers.append(nn.Conv2d(image.channels, random.choice((33, 64, 128)), 1))
        x, most = layers[0](x), WIDE_ELEMENTS
    for _ in range(random.randint(1, MOST_LAYERS)):
        x = _grown(random, layers, x, most)
    layers.append(_head(random, Shape(*x.shape[1:]), classes))
    if rarely(random, 0.06):
        layers.append(random.choice(ENDS)(1))
    module = nn.Sequential(*layers).eval()
    _weigh(module)
    mean, std = ((0.0,), (1.0,)) if rarely(random, 0.6) else ((random.uniform(0, 1),), (random.uniform(0.2, 2),))
    return Drawn(seed, module, image, classes, mean * image.channels, std * image.channels)


def _image(random: Random, wide: bool) -> Shape:
    channels, length = random.choice((1, 1, 2, 3)), random.randint(4, 40)
    if wide:
        length = random.choice((60, 64, 66, 100, 260))
    lengths = random.choice(
        ((length, 1), (length, 1), (1, length), (1, length), (side := random.randint(2, 12), side), (side, side + 3))
    )
    return Shape(channels, *lengths)


def _grown(random: Random, layers: list[nn.Module], x: torch.Tensor, most: int) -> torch.Tensor:
    """With one more layer, where it fits."""
    layer = random.choice(LAYERS)(random, Shape(*x.shape[1:]))
    if layer is None:
        layer = convolution(random, Shape(*x.shape[1:]))
    try:
        with torch.no_grad():
            made: torch.Tensor = layer.eval()(x)
    except RuntimeError:  # torch's own limits, such as pads of pools
        return x
    if not 0 < made[0].numel() <= max(most, x[0].numel()) or made.ndim != 4:
        return x
    layers.append(layer)
    return made


def _head(random: Random, shape: Shape, classes: int) -> nn.Module:
    size = shape.size
    kind = random.choice(("flat", "flat", "flat", "two", "pooled", "mean", "convolved"))
    if kind == "two":
        return nn.Sequential(nn.Flatten(), nn.Linear(size, 8), nn.ReLU(), nn.Linear(8, classes))
    if kind == "pooled":
        return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(shape.channels, classes))
    if kind == "mean":
        return nn.Sequential(Call(lambda _, x: x.mean((2, 3))), nn.Linear(shape.channels, classes))
    if kind == "convolved":
        return nn.Sequential(nn.Conv2d(shape.channels, classes, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return nn.Sequential(nn.Flatten(), nn.Linear(size, classes))


def _weigh(module: nn.Module) -> None:
    """Weights that keep a map's size, small biases, batch norms as training leaves them."""
    for layer in module.modules():
        if isinstance(layer, nn.Linear | nn.Conv1d | nn.Conv2d | nn.ConvTranspose2d):
            nn.init.kaiming_normal_(layer.weight)
            if layer.bias is not None:
                nn.init.normal_(layer.bias, std=0.1)
        elif isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d):
            assert layer.running_mean is not None and layer.running_var is not None
            nn.init.normal_(layer.running_mean, std=0.3)
            nn.init.uniform_(layer.running_var, 0.5, 2)
