"""Batch norm's statistics estimated anew are those of the batches, whatever was there before."""

import torch
from torch import nn

from sphynx.network.stream import StreamNetwork
from sphynx.space.stream import Stage, StreamDesign
from sphynx.space.tally import Shape
from sphynx.train.norms import estimate_norms


def test_the_first_layers_statistics_are_those_of_the_batches() -> None:
    torch.manual_seed(0)
    network = StreamNetwork(StreamDesign((Stage(4, (2,)),), Shape(1, 8, 8), 3, borders="zero")).eval()
    norm = network.stem[1]
    assert isinstance(norm, nn.BatchNorm2d) and norm.running_mean is not None
    norm.running_mean.fill_(7)
    batches = [(torch.randn(5, 1, 8, 8), torch.zeros(5)) for _ in range(4)]
    estimate_norms(network, batches, 3)
    with torch.no_grad():
        maps = [network.stem[0](x) for x, _ in batches[:3]]
    expected = torch.stack([one.mean((0, 2, 3)) for one in maps]).mean(0)
    torch.testing.assert_close(norm.running_mean, expected)
    torch.testing.assert_close(norm.running_var, torch.stack([one.var((0, 2, 3)) for one in maps]).mean(0))
    assert norm.momentum == 0.1 and not network.training
