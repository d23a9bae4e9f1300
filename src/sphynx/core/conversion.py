"""XOR-shared bits made additive by OT: v = v_s + v_c - 2 v_s v_c, each modulo a power of two of its own.

The product of the server's bit and the client's enters twice: what is wanted modulo 2^m takes a product modulo
2^(m-1). What is multiplied by 2^e in a ring of k bits is wanted modulo 2^(k-e) alone. So corrections are as narrow as
that, and a bit which is wanted modulo 2 takes neither an OT nor a correction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sphynx.core import ot
from sphynx.core.bits import bit_values

Bytes = NDArray[np.uint8]
Words = NDArray[np.uint64]

_TWO = np.uint64(2)


@dataclass(frozen=True)
class Conversion:
    """Public: rows of bits, whole words each, and how many bits of every row's products are wanted."""

    product_bits: tuple[int, ...]
    words: int

    @property
    def rows(self) -> int:
        """Rows that take OTs, one for each bit."""
        return sum(width > 0 for width in self.product_bits)

    @property
    def ots(self) -> int:
        return 64 * self.words * self.rows

    @property
    def correction_bytes(self) -> int:
        return 8 * self.words * sum(self.product_bits)

    def choices(self, bits: Words) -> Words:
        """Pick those of the client's (rows, words) by which it chooses in OTs."""
        return bits[[width > 0 for width in self.product_bits]].reshape(-1)

    def send(self, pads: ot.PadPair, bits: Words) -> tuple[Bytes, Words]:
        """The server's (corrections, additive shares (rows, bits of a row)), from its bits and both pads of the OTs."""
        own, corrections = bit_values(bits), [np.empty(0, np.uint8)]
        shares = own.copy()
        for row, width, place in self._places():
            of_row = ot.PadPair(pads.zeros[place], pads.ones[place])
            message, products = ot.send_products(of_row, own[row], width)
            corrections.append(message)
            shares[row] -= _TWO * products
        return np.concatenate(corrections), shares

    def receive(self, pads: Words, bits: Words, corrections: Bytes) -> Words:
        """The client's shares, from its bits and its pads of the OTs."""
        shares, start = bit_values(bits), 0
        for row, width, place in self._places():
            end = start + 8 * self.words * width
            shares[row] -= _TWO * ot.receive_products(pads[place], bits[row], corrections[start:end], width)
            start = end
        return shares

    def _places(self) -> Iterator[tuple[int, int, slice]]:
        """Each row that takes OTs, the width of its products, and where its OTs are."""
        taking = ((row, width) for row, width in enumerate(self.product_bits) if width > 0)
        for number, (row, width) in enumerate(taking):
            yield row, width, slice(64 * self.words * number, 64 * self.words * (number + 1))
