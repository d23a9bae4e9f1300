"""torchvision's networks by name, with a number of classes of one's own. Needs torch and torchvision, not Sphynx."""

from __future__ import annotations

import importlib
import sys

import torch
from torch import nn

MEAN, STD = 0.5, 0.25  # how all of the zoo normalises its pictures
CIFAR_CLASSES = 100  # of what was trained


def untrained(name: str, classes: int) -> nn.Module:
    options = {"init_weights": True, "aux_logits": False} if name == "googlenet" else {}
    made: nn.Module = getattr(models(), name)(num_classes=classes, **options)
    return made


def models() -> object:
    """Import torchvision's models. Beside a torch without CUDA its library does not load, and its operators for
    detection are not there: their names are enough."""
    if torch.version.cuda is None and "torchvision" not in sys.modules:
        library = torch.library.Library("torchvision", "FRAGMENT")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    try:
        return importlib.import_module("torchvision.models")
    except ImportError as error:
        sys.exit(f"the networks are torchvision's ({error}): pip install --no-deps torchvision==0.28.0")
