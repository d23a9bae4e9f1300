"""Layers of GMW ReLUs cut into batches, so that nobody holds the OTs of a whole layer, and the order of their messages.

A ReLU's OTs take a kilobyte while they are pads, ten times what is kept of them. A layer of more than CUT ReLUs is
therefore prepared as several batches, whose material is put together in place. The four messages of batches
(gmw_material.py) follow each other in an order that both parties derive from public sizes:

    client -> server   requests 0 1 2 ... as far as WINDOW_BYTES of them are not converted yet
                       conversion 0, further requests, conversion 1, ...
    server -> client   what answers each, in the same order

So both parties compute while messages travel either way, and what is held for them stays bounded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sphynx.core.gmw import ReluShape
from sphynx.core.ring import ring_dtype
from sphynx.program.cost.cost import CUT_RELUS
from sphynx.protocol.relu_layer import Arrays, ReluLayer

CUT = CUT_RELUS
WINDOW_BYTES = 1 << 24  # a client holds about four times as much for them
_BY_ELEMENT = frozenset({"arithmetic", "alpha"})  # all other material is planes


@dataclass(frozen=True)
class Cut:
    """ReLUs start .. start + shape.count of layer `number`."""

    number: int
    name: str
    start: int
    shape: ReluShape

    @property
    def own(self) -> slice:
        return slice(self.start, self.start + self.shape.count)


@dataclass(frozen=True)
class Turn:
    """The client's next message: batch `batch`'s request or its conversion."""

    batch: int
    converts: bool


def largest_cut(shape: ReluShape, left: int | None = None) -> ReluShape:
    """Return the shape of the next batch where `left` ReLUs are left, or all."""
    return replace(shape, count=min(CUT, shape.count if left is None else left))


def cuts_of(layers: Sequence[ReluLayer]) -> list[Cut]:
    return [
        Cut(number, layer.name, start, largest_cut(layer.shape, layer.shape.count - start))
        for number, layer in enumerate(layers)
        for start in range(0, layer.shape.count, CUT)
    ]


def turns(request_bytes: Sequence[int]) -> Iterator[Turn]:
    """Order the client's messages; request_bytes are those of each batch."""
    asked, open_bytes = 0, 0
    for converted, own_bytes in enumerate(request_bytes):
        while asked < len(request_bytes) and (asked == converted or open_bytes + request_bytes[asked] <= WINDOW_BYTES):
            open_bytes += request_bytes[asked]
            yield Turn(asked, converts=False)
            asked += 1
        yield Turn(converted, converts=True)
        open_bytes -= own_bytes


class Materials:
    """The material of layers, filled in batch by batch. Ring elements, most of it, are kept as narrow as they are."""

    def __init__(self, layers: Sequence[ReluLayer]) -> None:
        self._shapes = [layer.shape for layer in layers]
        self.arrays: list[Arrays] = [{} for _ in layers]

    def put(self, cut: Cut, material: Arrays) -> None:
        whole, shape = self.arrays[cut.number], self._shapes[cut.number]
        narrow = ring_dtype(shape.k)
        for name, part in material.items():
            size, first = (shape.count, cut.start) if name in _BY_ELEMENT else (shape.words, cut.start // 64)
            kept = part.astype(narrow, copy=False) if name in _BY_ELEMENT else part
            if cut.shape == shape:
                whole[name] = kept
                continue
            if name not in whole:
                whole[name] = np.empty((*kept.shape[:-1], size), kept.dtype)
            whole[name][..., first : first + kept.shape[-1]] = kept


def as_words(material: Arrays) -> Arrays:
    """Widen what `Materials` keeps narrow, as gadgets read it: for one layer at a time."""
    return {name: kept.astype(np.uint64, copy=False) for name, kept in material.items()}
