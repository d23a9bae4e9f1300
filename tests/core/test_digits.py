"""Digits of two bits: their carries on all values, preprocessed from OT pads, and masks that hide every term."""

from __future__ import annotations

import numpy as np
import pytest

from sphynx.core import Prg
from sphynx.core.bits import slice_bits
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


def carry(planes_s: Words, planes_c: Words, begin: int, end: int, incoming: int) -> Words:
    """Out of bits begin to end - 1, by hand."""
    found = np.full(planes_s.shape[1], 0 - incoming & 2**64 - 1, np.uint64)
    for s, c in zip(planes_s[begin:end], planes_c[begin:end], strict=True):
        found = (s & c) | (found & (s ^ c))
    return found


@pytest.mark.parametrize(("w", "f"), [(2, 0), (3, 0), (3, 1), (5, 2), (6, 3), (7, 0), (26, 13), (26, 12), (64, 62)])
def test_leaves_are_the_carries_of_their_bits(w: int, f: int) -> None:
    digits = Digits(w, f)
    s, c = random_words(4096), random_words(4096)
    planes_s, planes_c = slice_bits(s, w), slice_bits(c, w)
    server, client = digits.terms(planes_s), digits.terms(planes_c)
    assert len(server) == digits.term_rows
    masks, server_products, client_products = dealt(digits, client)
    shares = [digits.leaves(server, server_products), digits.leaves(client, client_products, server ^ masks)]
    g, p = (a ^ b for a, b in zip(*shares, strict=True))

    starts = list(range(f % 2, f, 2)) + list(range(f + (w - 1 - f) % 2, w - 1, 2))
    starts = sorted({*starts, *([0] if f % 2 else []), *([f] if (w - 1 - f) % 2 else [])})
    assert digits.count == len(starts)
    assert digits.low_count == sum(start < f for start in starts)
    for leaf, (begin, end) in enumerate(zip([*starts, w - 1], [*starts[1:], w - 1, w], strict=True)):
        generated, passed = (carry(planes_s, planes_c, begin, end, incoming) for incoming in (0, 1))
        assert (g[leaf] == generated).all()
        assert (p[leaf] == (generated ^ passed)).all()


def test_what_the_client_receives_is_uniform() -> None:
    """Whatever the bits are: all values of a digit's three masked terms and of both corrections come equally often,
    and know nothing of each other, beside the client's own pads. 2^18 digits, 7 standard deviations."""
    digits = Digits(4, 1)
    for s, c in ((0, 0), (7, 7), (2, 5), (6, 3)):
        values_s, values_c = np.full(2**18, s, np.uint64), np.full(2**18, c, np.uint64)
        server, client = (digits.terms(slice_bits(values, 4)) for values in (values_s, values_c))
        zeros, ones = random_words(2, *client.shape), random_words(2, *client.shape)
        masks, _, corrections = digits.masks(zeros, ones)
        pads = zeros ^ ((zeros ^ ones) & client)
        seen = [*(server ^ masks)[:3], *corrections, pads[0, 0], pads[1, 0], pads[0, 1], pads[1, 1], pads[0, 2]]
        bits = np.stack([np.unpackbits(plane.view(np.uint8)) for plane in seen]).astype(np.int64)
        counts = np.bincount((bits << np.arange(len(bits))[:, None]).sum(0), minlength=2 ** len(bits))
        expected = bits.shape[1] / len(counts)
        assert (abs(counts - expected) < 7 * expected**0.5).all()
