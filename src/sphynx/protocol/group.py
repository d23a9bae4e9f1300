"""The images of a group of bundles, which go through the linear maps at once, and what each bundle has of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sphynx.protocol.linear import MaskedTensors
from sphynx.protocol.shares import Words


def places(batch: int, images: int) -> Iterator[slice]:
    """The images of each bundle among all of a group."""
    return (slice(first, first + batch) for first in range(0, images, batch))


def own_copy(tensor: NDArray[Any], own: slice) -> NDArray[Any]:
    """A view would keep the group's whole tensor in memory as long as one of its bundles."""
    return tensor if own.stop - own.start == len(tensor) else tensor[own].copy()


def fill_up(mask: Words, images: int) -> Words:
    """Put zeros in the places of images that are not there: nobody uses what comes of them."""
    if len(mask) == images:
        return mask
    return np.concatenate([mask, np.zeros((images - len(mask), *mask.shape[1:]), np.uint64)])


@dataclass(frozen=True)
class OwnTensors:
    """A bundle's shares among those of a group."""

    tensors: MaskedTensors
    own: slice

    def __getitem__(self, name: str) -> Words:
        return own_copy(self.tensors[name], self.own)
