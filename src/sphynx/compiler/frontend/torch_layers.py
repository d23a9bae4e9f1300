"""Read a torch module for walkers: its weights in double precision, batch norm as scale and shift."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import attrgetter

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.weak import WeakIdKeyDictionary

from sphynx.compiler.frontend import numbers
from sphynx.compiler.fusion.affine import Floats, used_taps
from sphynx.space.reduced import Activations

_patterns = WeakIdKeyDictionary()  # by tensor: its version, and where it is not zero


@dataclass(frozen=True, eq=False)
class TorchNumbers:
    """The numbers of a torch module as they are now; its modules are called as in its state."""

    module: nn.Module
    reduced: Mapping[str, Activations] = field(default_factory=dict)

    def find(self, name: str) -> Floats | None:
        try:
            tensor = attrgetter(name)(self.module)
        except AttributeError:
            return None
        return None if tensor is None else array_of(tensor)

    def kernel(self, name: str, *, outline: bool) -> Floats:
        return kernel_of(attrgetter(name)(self.module), outline=outline)


def kernel_of(tensor: Tensor, *, outline: bool) -> Floats:
    """A convolution's weights; in an outline, of which a choice of cuts makes hundreds, ones where a tap is used."""
    if not outline:
        return array_of(tensor)
    if tensor not in _patterns or _patterns[tensor][0] != tensor._version:
        _patterns[tensor] = tensor._version, used_taps(array_of(tensor))
    return np.broadcast_to(_patterns[tensor][1], tuple(tensor.shape))


def array_of(tensor: Tensor) -> Floats:
    return tensor.detach().cpu().to(torch.float64).numpy()


def fixed_norm(layer: nn.Module) -> tuple[Floats, Floats]:
    """The factor and shift of a batch norm with its running statistics."""
    assert isinstance(layer, nn.BatchNorm2d) and layer.running_mean is not None and layer.running_var is not None
    weight, bias = (None if given is None else array_of(given) for given in (layer.weight, layer.bias))
    return numbers.fixed_norm(array_of(layer.running_mean), array_of(layer.running_var), weight, bias, layer.eps)
