"""Numbers of a party as choice bits of OTs: the order of the bits, chunk by chunk.

Instances come in chunks of CHUNK; in a chunk the OTs are (bits, instances), the bits of one number after those of
another, lowest first. So garbling, sending and receiving overlap, and a chunk's labels stay in the cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sphynx.core.bits import bit_values, pack_ring, plane_words, slice_bits

Words = NDArray[np.uint64]

CHUNK = 2048  # instances, a multiple of 64
_WORD_BYTES = 8


@dataclass(frozen=True)
class Chunk:
    """Instances start .. start + count."""

    number: int
    start: int
    count: int

    @property
    def own(self) -> slice:
        return slice(self.start, self.start + self.count)

    @property
    def words(self) -> slice:
        """The chunk's words of a plane over all instances."""
        return slice(self.start // 64, plane_words(self.start + self.count))


@dataclass(frozen=True)
class Wires:
    """`count` instances of numbers of these widths, in bits."""

    count: int
    widths: tuple[int, ...]

    @property
    def bits(self) -> int:
        return sum(self.widths)

    @property
    def ots(self) -> int:
        return self.bits * self.count

    def chunks(self) -> Iterator[Chunk]:
        for number, start in enumerate(range(0, self.count, CHUNK)):
            yield Chunk(number, start, min(CHUNK, self.count - start))

    def places(self, chunk: Chunk) -> slice:
        """The chunk's OTs among all."""
        return slice(self.bits * chunk.start, self.bits * (chunk.start + chunk.count))

    def blocks(self, all_blocks: Words, chunk: Chunk) -> Words:
        """The chunk's labels or pads, (bits, instances, 2)."""
        return all_blocks[self.places(chunk)].reshape(self.bits, chunk.count, 2)

    def choices(self, values: Sequence[Words]) -> Words:
        """The bits of the numbers, one array of `count` for each width, in the order of the OTs, packed."""
        packed = np.zeros(plane_words(self.ots), np.uint64)
        for chunk in self.chunks():
            planes = np.concatenate(
                [slice_bits(value[chunk.own], width) for value, width in zip(values, self.widths, strict=True)]
            )
            places = self.places(chunk)
            if chunk.count % 64:  # only the last chunk: rows follow each other without padding
                tail = pack_ring(bit_values(planes)[:, : chunk.count].flatten(), 1)
                packed.view(np.uint8)[_WORD_BYTES * (places.start // 64) :][: tail.size] = tail
            else:
                packed[places.start // 64 : places.stop // 64] = planes.reshape(-1)
        return packed
