"""The counts of networks that differ in their channels alone, without an account of each.

What a layer counts is a product of its sizes, its kernel and at most two numbers of channels, and all of these are
multiples of C, but for the ImageNet stem's C // 2. So among even C, and among odd C, every total is a polynomial in C
of degree two at most: three accounts give it exactly (Newton's forward differences, in whole numbers).
"""

from __future__ import annotations

from dataclasses import astuple, replace

from sphynx.space.account import account_of
from sphynx.space.design import Design
from sphynx.space.tally import Tally

_FIRST = (2, 3)  # even and odd: the least that every stem allows


class ChannelCounts:
    """`of(C)` is the total of `account_of` for this design with C channels."""

    def __init__(self, design: Design) -> None:
        self.design = design
        self._differences: dict[int, tuple[tuple[int, int, int], ...]] = {}  # by first C: value, first, second

    def of(self, channels: int) -> Tally:
        first = _FIRST[channels % 2]
        if first not in self._differences:
            self._differences[first] = self._differences_from(first)
        steps = (channels - first) // 2
        pairs = steps * (steps - 1) // 2
        return Tally(*(value + steps * slope + pairs * bend for value, slope, bend in self._differences[first]))

    def _differences_from(self, first: int) -> tuple[tuple[int, int, int], ...]:
        accounts = (account_of(replace(self.design, channels=channels)) for channels in (first, first + 2, first + 4))
        totals = (astuple(account.total) for account in accounts)
        return tuple((a, b - a, c - 2 * b + a) for a, b, c in zip(*totals, strict=True))
