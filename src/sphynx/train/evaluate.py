"""Accuracy of a network on images, with batch norm's running statistics: in fp32, or by bf16 autocast where asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from sphynx.data.batches import plain_batches
from sphynx.data.images import ImageSet, Statistics
from sphynx.data.streamed import StreamedSet, stream_plain
from sphynx.network.backend import fast_convolutions
from sphynx.network.regions import as_written

BATCH = 500
# Fewer kernels to launch, where images are small.
GPU_BATCH, GPU_BATCH_SIDE = 2_000, 64  # images; pixels


@dataclass(frozen=True)
class Evaluation:
    accuracy: float
    top5: float
    loss: float
    images: int

    def to_json(self) -> dict[str, float | int]:
        return {"accuracy": self.accuracy, "top5": self.top5, "loss": self.loss, "images": self.images}


class Answers:
    """Keeps the logits and labels of an evaluation: `evaluate(network, images, mean, std, answers.add)`."""

    def __init__(self) -> None:
        self._logits: list[Tensor] = []
        self._labels: list[Tensor] = []

    def add(self, logits: Tensor, labels: Tensor) -> None:
        self._logits.append(logits.cpu())
        self._labels.append(labels.cpu())

    @property
    def arrays(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Logits [n, classes] and labels [n]."""
        return torch.cat(self._logits).double().numpy(), torch.cat(self._labels).numpy()


def evaluate(
    network: nn.Module,
    images: ImageSet | StreamedSet,
    mean: Statistics,
    std: Statistics,
    seen: Callable[[Tensor, Tensor], None] = lambda _logits, _labels: None,
    *,
    half: bool = False,
) -> Evaluation:
    """`seen` is called for every batch with its logits and its labels.

    `half` computes as a training in bf16 does, whose weights and maps are rounded in every layer.
    """
    device = next(network.parameters()).device
    training = network.training
    network.eval()
    sums = torch.zeros(3, dtype=torch.float64, device=device)
    try:
        # TF32 would round the operands of convolutions to 10 bits.
        with (
            torch.no_grad(),
            as_written(network),
            fast_convolutions(device),
            torch.autocast(device.type, torch.bfloat16, enabled=half),
            torch.backends.cudnn.flags(enabled=True, benchmark=False, allow_tf32=False),
        ):
            for x, y in _batches(images, device, mean, std):
                logits = network(x).float()
                best = logits.topk(min(5, logits.shape[1]), dim=1).indices
                sums += _sums(logits, best == y[:, None], y)
                seen(logits, y)
    finally:
        network.train(training)
    hits, hits5, loss = (sums / len(images)).tolist()
    return Evaluation(hits, hits5, loss, len(images))


def _batches(
    images: ImageSet | StreamedSet, device: torch.device, mean: Statistics, std: Statistics
) -> Iterator[tuple[Tensor, Tensor]]:
    if isinstance(images, StreamedSet):
        return stream_plain(images, BATCH, device=device, mean=mean, std=std)
    many = device.type == "cuda" and max(images.shape[1:]) <= GPU_BATCH_SIDE
    return plain_batches(images, GPU_BATCH if many else BATCH, device=device, mean=mean, std=std)


def _sums(logits: Tensor, hits: Tensor, y: Tensor) -> Tensor:
    loss = functional.cross_entropy(logits, y, reduction="sum")
    return torch.stack([hits[:, 0].sum().double(), hits.sum().double(), loss.double()])
