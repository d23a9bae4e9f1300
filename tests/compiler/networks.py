"""Networks with random weights and statistics, as after training, in double precision."""

import torch
from torch import nn

from sphynx.network.build import AnyNetwork, build_network
from sphynx.space.files import AnyDesign

MEAN, STD = (0.4, 0.5, 0.6), (0.2, 0.25, 0.3)


def random_network(design: AnyDesign, seed: int = 0) -> AnyNetwork:
    torch.manual_seed(seed)
    network = build_network(design).double().eval()
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            assert module.running_mean is not None and module.running_var is not None
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)
            if module.affine:
                nn.init.uniform_(module.weight, 0.5, 1.5)
                nn.init.normal_(module.bias)
    return network


def normalised(pixels: torch.Tensor) -> torch.Tensor:
    """The values that the network itself reads."""
    channels = pixels.shape[1]
    mean, std = (torch.tensor(values[:channels], dtype=torch.float64)[:, None, None] for values in (MEAN, STD))
    return (pixels.double() / 255 - mean) / std
