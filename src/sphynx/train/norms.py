"""Batch norm's statistics estimated anew, for the weights as they are at the end.

Running statistics are averages over past steps, whose weights were others, and a moving average of weights never had
any of its own. Here each layer's are the plain mean over batches of training images, of one network.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

import torch
from torch import Tensor, nn

from sphynx.network.backend import fast_convolutions
from sphynx.network.build import AnyNetwork, set_drop_path
from sphynx.network.regions import as_written


@torch.no_grad()
def estimate_norms(network: AnyNetwork, batches: Iterable[tuple[Tensor, Tensor]], count: int) -> None:
    """Estimate the statistics of all batch norms from `count` batches, or as many as there are."""
    norms = [module for module in network.modules() if isinstance(module, nn.BatchNorm2d)]
    momenta, training = [norm.momentum for norm in norms], network.training
    device = next(network.parameters()).device
    set_drop_path(network, 0.0)
    network.train()
    try:
        with as_written(network), fast_convolutions(device):
            for number, (x, _) in enumerate(islice(batches, count)):
                for norm in norms:
                    norm.momentum = 1 / (number + 1)  # the first batch replaces what was there
                network(x)
    finally:
        network.train(training)
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum
