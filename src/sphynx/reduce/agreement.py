"""How often a network answers as the original does: what methods and networks are chosen by, since labels may lack."""

from __future__ import annotations

import torch
from torch import nn

from sphynx.data.batches import plain_batches
from sphynx.data.images import ImageSet
from sphynx.network.backend import fast_convolutions
from sphynx.reduce.task import Task
from sphynx.train.evaluate import BATCH


def agreement(task: Task, network: nn.Module, images: ImageSet | None = None) -> float:
    """On these images, by default those that are held out."""
    chosen = task.fitted_and_held_out[1] if images is None else images
    network.to(task.device).eval()
    original = task.original.to(task.device).eval()
    equal = torch.zeros((), dtype=torch.int64, device=task.device)
    with torch.no_grad(), fast_convolutions(task.device):
        for x, _ in plain_batches(chosen, BATCH, device=task.device, mean=task.data.mean, std=task.data.std):
            equal += (network(x).argmax(1) == original(x).argmax(1)).sum()
    return float(equal) / max(len(chosen), 1)
