"""Read a layer for walkers of torch networks: its weights in double precision, batch norm as scale and shift."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.weak import WeakIdKeyDictionary

from sphynx.compiler.fusion.affine import Floats, used_taps
from sphynx.compiler.fusion.fuse import Fuser

_patterns = WeakIdKeyDictionary()  # by tensor: its version, and where it is not zero


def kernel_of(fuser: Fuser, tensor: Tensor) -> Floats:
    """A convolution's weights; in an outline, of which a choice of cuts makes hundreds, ones where a tap is used."""
    if not fuser.is_outline:
        return array_of(tensor)
    if tensor not in _patterns or _patterns[tensor][0] != tensor._version:
        _patterns[tensor] = tensor._version, used_taps(array_of(tensor))
    return np.broadcast_to(_patterns[tensor][1], tuple(tensor.shape))


def array_of(tensor: Tensor) -> Floats:
    return tensor.detach().cpu().to(torch.float64).numpy()


def fixed_norm(layer: nn.Module) -> tuple[Floats, Floats]:
    """The factor and shift of a batch norm with its running statistics."""
    assert isinstance(layer, nn.BatchNorm2d) and layer.running_mean is not None and layer.running_var is not None
    factor = 1 / np.sqrt(array_of(layer.running_var) + layer.eps)
    if layer.weight is not None:
        factor = factor * array_of(layer.weight)
    shift = -array_of(layer.running_mean) * factor
    return factor, shift if layer.bias is None else shift + array_of(layer.bias)
