"""Digits of two bits: their terms, the products preprocessed from OT pads, and masks that hide every term. Their
carries are in core/tests/test_digits.cpp."""

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


def dealt(digits: Digits, client: Words) -> tuple[Words, Words, Words]:
    """(the server's masks, its share of the products, the client's), from random OTs with the client's choices."""
    zeros, ones = random_words(2, *client.shape), random_words(2, *client.shape)
    masks, products, corrections = digits.masks(zeros, ones)
    assert len(corrections) == digits.correction_rows
    pads = zeros ^ ((zeros ^ ones) & client)
    return masks, products, digits.products(pads, client, corrections)


@pytest.mark.parametrize(("w", "f"), [(2, 0), (3, 0), (3, 1), (5, 2), (6, 3), (7, 0), (26, 13), (26, 12), (64, 62)])
def test_terms_are_of_pairs_that_do_not_cross_f(w: int, f: int) -> None:
    digits, values = Digits(w, f, w - 1), random_words(130)
    low = [*range(f % 2, f, 2), *range(f + (w - 1 - f) % 2, w - 1, 2)]
    alone = [*([0] if f % 2 else []), *([f] if (w - 1 - f) % 2 else []), w - 1]
    bits = [values >> np.uint64(bit) & np.uint64(1) for bit in range(w)]
    rows = [*(bits[b + 1] for b in low), *(bits[b] for b in low), *(bits[b] & bits[b + 1] for b in low)]
    rows += [bits[bit] for bit in alone]
    terms = np.unpackbits(digits.terms(values).view(np.uint8), axis=1, bitorder="little")
    assert digits.term_rows == len(rows) == len(terms)
    assert (terms[:, :130] == np.stack(rows)).all()
    assert not terms[:, 130:].any()
    assert digits.correction_rows == 2 * len(low)


def test_a_truncation_takes_its_top_bit_from_where_it_is() -> None:
    values = random_words(64)
    moved = values & np.uint64(2**5 - 1) | (values >> np.uint64(19) & np.uint64(1)) << np.uint64(5)
    assert (Digits(6, 0, 19).terms(values) == Digits(6, 0, 5).terms(moved)).all()


@pytest.mark.parametrize(("w", "f"), [(2, 0), (3, 1), (26, 13), (64, 62)])
def test_products_are_what_the_masks_add_to_a_digit(w: int, f: int) -> None:
    """g = s1 c1 + s1 s0 c0 + s0 c1 c0 and p = s1 c0 + s0 c1, and what each knows, with masks for the server's."""
    digits = Digits(w, f, w - 1)
    client = digits.terms(random_words(4096))
    masks, server_products, client_products = dealt(digits, client)
    pairs = digits.correction_rows // 2
    (m1, m0, m10, m), (c1, c0, c10, c) = (np.split(rows, [pairs, 2 * pairs, 3 * pairs]) for rows in (masks, client))
    expected = [(m1 & c1) ^ (m10 & c0) ^ (m0 & c10), (m1 & c0) ^ (m0 & c1), m & c]
    assert (server_products ^ client_products == np.concatenate(expected)).all()


def test_what_the_client_receives_is_uniform() -> None:
    """Whatever the bits are: all values of a digit's three masked terms and of both corrections come equally often,
    and know nothing of each other, beside the client's own pads. 2^18 digits, 7 standard deviations."""
    digits = Digits(4, 1, 3)
    for s, c in ((0, 0), (7, 7), (2, 5), (6, 3)):
        values_s, values_c = np.full(2**18, s, np.uint64), np.full(2**18, c, np.uint64)
        server, client = (digits.terms(values) for values in (values_s, values_c))
        zeros, ones = random_words(2, *client.shape), random_words(2, *client.shape)
        masks, _, corrections = digits.masks(zeros, ones)
        pads = zeros ^ ((zeros ^ ones) & client)
        seen = [*(server ^ masks)[:3], *corrections, pads[0, 0], pads[1, 0], pads[0, 1], pads[1, 1], pads[0, 2]]
        bits = np.stack([np.unpackbits(plane.view(np.uint8)) for plane in seen]).astype(np.int64)
        counts = np.bincount((bits << np.arange(len(bits))[:, None]).sum(0), minlength=2 ** len(bits))
        expected = bits.shape[1] / len(counts)
        assert (abs(counts - expected) < 7 * expected**0.5).all()
