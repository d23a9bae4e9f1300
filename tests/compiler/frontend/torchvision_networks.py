"""torchvision's networks as they come, with random weights; tests skip where it is not installed."""

from typing import Any

import pytest
import torch
from torch import nn

SIZE = 32


def small_network(name: str) -> tuple[nn.Module, tuple[int, int, int]]:
    """A network of ten classes, and the image that it takes."""
    models = _models()
    torch.manual_seed(0)
    options = {"init_weights": False, "aux_logits": False} if name == "googlenet" else {}
    return models.get_model(name, weights=None, num_classes=10, **options).eval(), (3, SIZE, SIZE)


def _models() -> Any:
    if not hasattr(torch.ops.torchvision, "nms"):
        # Built for another torch, it lacks its compiled operators; its networks need none of them.
        library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor boxes, Tensor scores, float threshold) -> Tensor")
        _KEPT.append(library)
    return pytest.importorskip("torchvision.models")


_KEPT: list[torch.library.Library] = []  # an operator lives as long as its library
