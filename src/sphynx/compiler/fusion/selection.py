"""Elements of a tensor as they are: what a residual sum, a join, a slice or a shuffle takes of it.

A selection stays public until a convolution or a scale makes a kernel of it: sums of selections are steps that cost
nothing (`Combine`), and selections of selections are selections.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from sphynx.compiler.fusion.kernel_axis import Sliding
from sphynx.program.ir import NOTHING, Summand
from sphynx.space.tally import Shape

Index = tuple[int, ...]  # for each position of an axis the one that it reads, or NOTHING


@dataclass(frozen=True)
class Selection:
    source: str
    shape: Shape  # of the source
    channels: Index
    rows: Index
    columns: Index
    negative: bool = False

    @classmethod
    def whole(cls, source: str, shape: Shape) -> Selection:
        channels, rows, columns = (tuple(range(length)) for length in shape)
        return cls(source, shape, channels, rows, columns)

    @property
    def is_whole(self) -> bool:
        return self == Selection.whole(self.source, self.shape)

    @property
    def keeps_channels(self) -> bool:
        """All of them, in their order."""
        return self.channels == tuple(range(self.shape.channels))

    def selected(self, channels: Index | None, rows: Index | None, columns: Index | None) -> Selection:
        """Select these of its own positions; None stands for all of them."""
        return replace(
            self,
            channels=_through(self.channels, channels),
            rows=_through(self.rows, rows),
            columns=_through(self.columns, columns),
        )

    def negated(self) -> Selection:
        return replace(self, negative=not self.negative)

    def summand(self) -> Summand:
        """A whole axis is written as an empty index."""
        channels, rows, columns = (
            () if index == tuple(range(length)) else index
            for index, length in zip((self.channels, self.rows, self.columns), self.shape, strict=True)
        )
        return Summand(self.source, channels, rows, columns, negative=self.negative)

    def axes(self) -> tuple[Sliding, Sliding] | None:
        """Rows and columns as a kernel of one tap reads them; None where no convolution does."""
        rows, columns = sliding(self.rows, self.shape.height), sliding(self.columns, self.shape.width)
        return (rows, columns) if rows and columns and rows.stride == columns.stride else None


@lru_cache(maxsize=4096)
def _through(inner: Index, outer: Index | None) -> Index:
    return inner if outer is None else tuple(NOTHING if at == NOTHING else inner[at] for at in outer)


def sliding(index: Index, length: int) -> Sliding | None:
    read = [(output, at) for output, at in enumerate(index) if at != NOTHING]
    if not read:
        return None
    stride = 1 if len(read) == 1 else (read[1][1] - read[0][1]) // (read[1][0] - read[0][0])
    if stride < 1:
        return None
    before = stride * read[0][0] - read[0][1]
    reads = (stride * output - before for output in range(len(index)))
    fits = tuple(at if 0 <= at < length else NOTHING for at in reads) == index
    return Sliding(length, stride, before, 1) if fits else None


def pick(axis: int, index: Index) -> list[Index | None]:
    """Arguments of `selected`: this index along one of channels, rows and columns."""
    arguments: list[Index | None] = [None, None, None]
    arguments[axis] = index
    return arguments
