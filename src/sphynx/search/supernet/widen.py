"""A supernet in widths that tensor cores want, without changing what it computes or learns: see `network.widen`.

Widths of 5 and 20 channels, the paper's, make cuDNN pad and slice around nearly every convolution. Partial channels
(PC-DARTS) are fractions of a width, which padding would change: such a supernet stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

from sphynx.network.widen import corner, embed
from sphynx.search.supernet.fan import StackedConvolution
from sphynx.search.supernet.supernet import Supernet


def widened_supernet(narrow: Supernet, multiple: int) -> Supernet:
    if narrow.channel_divisor > 1 or multiple == 1:
        return narrow
    wide = Supernet(narrow.skeleton, narrow.space, form=narrow.form, channel_multiple=multiple)
    embed(wide, _pairs(narrow, wide))
    return wide


def _pairs(narrow: Supernet, wide: Supernet) -> Iterator[tuple[Tensor, Tensor]]:
    """Pair each tensor of the narrow supernet with the part of the wide one's that holds it."""
    nodes = len(narrow.space.intermediates)
    stacked = {
        id(weight): module.targets
        for module in narrow.modules()
        if isinstance(module, StackedConvolution)
        for weight in module.weights
    }
    held = wide.state_dict(keep_vars=True)
    for name, part in narrow.state_dict(keep_vars=True).items():
        whole = held[name]
        if name.endswith(".output.0.weight"):  # it reads the joined nodes, each of them padded
            part, whole = (tensor.unflatten(1, (nodes, -1)) for tensor in (part, whole))
        elif id(part) in stacked:  # it writes the joined targets
            part, whole = (tensor.unflatten(0, (stacked[id(part)], -1)) for tensor in (part, whole))
        yield part, corner(whole, part)
