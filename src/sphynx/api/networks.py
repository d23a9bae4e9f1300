"""Trained networks: load them by name or run folder, and evaluate them in the clear."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from sphynx.data.class_order import ordered_as
from sphynx.data.images import Data
from sphynx.data.open import open_known
from sphynx.data.source import Split
from sphynx.data.streamed import StreamedData
from sphynx.network.fit import require_fit
from sphynx.network.trained import TrainedNetwork, load_trained
from sphynx.run.work import pick_device
from sphynx.train.evaluate import Evaluation
from sphynx.train.evaluate import evaluate as evaluate_module
from sphynx.zoo.shipped import model_path


def load_network(name_or_run: str | Path) -> TrainedNetwork:
    """A run folder, its model.safetensors, or a name from `sphynx models ls`. `.module` is the torch module.

    >>> network = sphynx.load_network("runs/digits")
    >>> network.design.relus, len(network.class_names)
    (512, 10)
    """
    return load_trained(model_path(name_or_run))


def evaluate_network(
    network: TrainedNetwork | str | Path,
    data: Data | StreamedData | str | Path | None = None,
    *,
    split: Split = "test",
    device: str | torch.device = "auto",
    seen: Callable[[Tensor, Tensor], None] = lambda _logits, _labels: None,
) -> Evaluation:
    """Accuracy in fp32 on the data that the network was trained on, or on others of the same classes, in any order.

    `seen` is called for every batch with its logits and its labels, both in the network's order of classes.

        >>> 0 < sphynx.evaluate_network("runs/digits").accuracy <= 1
        True
    """
    trained = network if isinstance(network, TrainedNetwork) else load_network(network)
    opened = known_data(trained, data)
    require_fit(trained.design, opened, trained=True)
    images = ordered_as(opened.test if split == "test" else opened.train, trained.class_names, where=opened.name)
    before = next(trained.module.parameters()).device
    try:
        module = trained.module.to(pick_device(str(device)))
        return evaluate_module(module, images, trained.mean, trained.std, seen=seen)
    finally:
        trained.module.to(before)


def known_data(trained: TrainedNetwork, data: Data | StreamedData | str | Path | None) -> Data | StreamedData:
    """Data that are open already, by name or path, or those that the network was trained on."""
    if data is None or isinstance(data, str | Path):
        return open_known(str(data or ""), None, None, trained.source, where=trained.name)
    return data
