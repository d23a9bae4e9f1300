"""Digits of up to four bits: how they are cut, the products preprocessed from OT pads, and masks that hide every code.
Their carries are in core/tests/test_digits.cpp."""

from __future__ import annotations

import numpy as np
import pytest

from sphynx.core import Prg
from sphynx.core.digits import Digits

Words = np.ndarray


def random_words(*shape: int) -> Words:
    words = np.empty(shape, np.uint64)
    Prg().fill_words(words)
    return words


def bits_of(planes: Words) -> Words:
    return np.unpackbits(np.ascontiguousarray(planes).view(np.uint8), axis=-1, bitorder="little").astype(np.int64)


def random_ots(bits: Words) -> tuple[Words, Words, Words]:
    """(zeros, ones, what the client gets), a block for each OT, row after row."""
    zeros, ones = random_words(64 * bits.size, 2), random_words(64 * bits.size, 2)
    return zeros, ones, np.where(bits_of(bits).reshape(-1, 1) == 1, ones, zeros)


def blocks_of(words: Words) -> Words:
    """Pads of which only the low words serve."""
    return np.stack([words.reshape(-1), random_words(words.size)], axis=1)


@pytest.mark.parametrize(
    ("w", "f", "widths"),
    [
        (2, 0, (1,)), (3, 1, (1, 1)), (5, 0, (4,)), (6, 0, (3, 2)), (6, 3, (3, 2)), (26, 13, (4, 3, 3, 3, 4, 4, 4)),
        (32, 8, (4, 4, 4, 4, 4, 4, 4, 3)), (64, 62, (4,) * 14 + (3, 3, 1)),
    ],
)  # fmt: skip
def test_digits_have_four_bits_at_most_and_do_not_cross_f(w: int, f: int, widths: tuple[int, ...]) -> None:
    digits, values = Digits(w, f, w - 1, 3), random_words(130)
    assert digits.widths == widths
    assert sum(widths) == w - 1 and f in np.cumsum((0, *widths))
    assert digits.bit_rows == w
    assert digits.code_rows == sum(2**width - 1 for width in widths) + 1
    assert digits.correction_rows == sum(2**width - 1 for width in widths if width > 1)
    bits = bits_of(digits.bits(values))
    assert (bits[:, :130] == np.stack([values >> np.uint64(bit) & np.uint64(1) for bit in range(w)])).all()
    assert not bits[:, 130:].any()


def test_a_truncation_takes_its_top_bit_from_where_it_is() -> None:
    values = random_words(64)
    moved = values & np.uint64(2**5 - 1) | (values >> np.uint64(19) & np.uint64(1)) << np.uint64(5)
    assert (Digits(6, 0, 19, 2).bits(values) == Digits(6, 0, 5, 2).bits(moved)).all()


@pytest.mark.parametrize(("w", "f"), [(2, 0), (3, 1), (26, 13), (64, 62)])
def test_products_are_what_the_masks_add_to_a_digit(w: int, f: int) -> None:
    """To g = e_(N-c) + ... + e_(N-1) and to p = e_(N-1-c), digit for digit, by tables."""
    digits = Digits(w, f, w - 1, 3)
    own = digits.bits(random_words(4096))
    zeros, ones, pads = random_ots(own)
    masks, server, corrections = digits.masks(zeros, ones)
    assert (len(masks), len(corrections)) == (digits.code_rows, digits.correction_rows)
    products = bits_of(server ^ digits.products(pads, own, corrections))
    bits, masks = bits_of(own), bits_of(masks)
    of_g, of_p, row, code = [], [], 0, 0
    for width in (*digits.widths, 1):
        entries = 2**width
        c = sum(bits[row + bit] << bit for bit in range(width))
        m = np.vstack([np.zeros_like(c), masks[code : code + entries - 1]])
        m[0] = m.sum(0) % 2
        of_g.append(np.where(np.arange(entries)[:, None] >= np.maximum(entries - c, 1), m, 0).sum(0) % 2)
        of_p += [np.take_along_axis(m, (entries - 1 - c)[None], 0)[0]] if width > 1 else []
        row, code = row + width, code + entries - 1
    assert (products == np.stack(of_g + of_p)).all()


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_what_the_client_receives_is_uniform(width: int) -> None:
    """Whatever its digit is: the pad bits that it does not know reach every value of masks and corrections together.
    That is linear, so it is enough to count the rank."""
    digits = Digits(width + 1, 0, width, 3)
    assert digits.widths == (width,)
    used = 2 << width  # bits of a pad
    for c in range(2**width):
        row, bit = (axis.ravel() for axis in np.indices((digits.bit_rows, used)))
        basis = np.zeros((digits.bit_rows, -(-row.size // 64) * 64), np.uint64)
        # an instance for each bit of the pads that were not chosen
        basis[row, np.arange(row.size)] = np.uint64(1) << bit.astype(np.uint64)
        nothing = np.zeros_like(basis)
        chosen = np.array([*(c >> place & 1 for place in range(width)), 0], bool)[:, None]  # of the top bit 0
        unknown = blocks_of(np.where(chosen, basis, nothing)), blocks_of(np.where(chosen, nothing, basis))
        masks, _, corrections = digits.masks(*unknown)
        reached = bits_of(np.vstack([masks, corrections]))[:, : row.size]
        assert rank(reached) == len(reached) == digits.code_rows + digits.correction_rows


def rank(matrix: Words) -> int:
    """Over GF(2)."""
    rows, found = [int("".join(map(str, row)), 2) for row in matrix], 0
    while rows:
        if pivot := rows.pop():
            found += 1
            lowest = pivot & -pivot
            rows = [row ^ pivot if row & lowest else row for row in rows]
    return found
