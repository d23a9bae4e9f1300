"""Nodes of three: products as they should be, and corrections that tell the peer nothing."""

from __future__ import annotations

import numpy as np
import pytest

from sphynx.core import Prg
from sphynx.protocol.three_masks import A_BITS, C_BITS, ThreeMasks

Words = np.ndarray
BITS = A_BITS + C_BITS


def random_words(*shape: int) -> Words:
    words = np.empty(shape, np.uint64)
    Prg().fill_words(words)
    return words


def exchanged(choices: list[Words], zeros: list[Words], offsets: list[Words]) -> tuple[list[Words], list[Words]]:
    """(masks, all five corrections) of both parties."""
    parties = []
    for own, peer in ((0, 1), (1, 0)):
        a, c = choices[own]
        chosen = np.concatenate([np.repeat(a[None], A_BITS, 0), np.repeat(c[None], C_BITS, 0)])
        parties.append(ThreeMasks(a, c, zeros[own], offsets[own], zeros[peer] ^ (chosen & offsets[peer])))
    first = [party.first_corrections for party in parties]
    for party, peers in zip(parties, first[::-1], strict=True):
        party.hear_first(peers)
    second = [party.second_corrections for party in parties]
    masks = [party.masks(peers) for party, peers in zip(parties, second[::-1], strict=True)]
    return masks, [np.concatenate(both) for both in zip(first, second, strict=True)]


def test_shares_add_up_to_the_products() -> None:
    shape = (5, 7)  # nodes, words
    masks, _ = exchanged(*([random_words(rows, *shape) for _ in range(2)] for rows in (2, BITS, BITS)))
    a, b, c, d, e, *products = masks[0] ^ masks[1]
    for found, factors in zip(
        products, ([a, b], [a, c], [a, d], [a, e], [c, d], [c, e], [a, c, d], [a, c, e]), strict=True
    ):
        assert (found == np.bitwise_and.reduce(factors)).all()


@pytest.mark.parametrize("own", [0, 1])
def test_corrections_leave_all_masks_possible(own: int) -> None:
    """Whatever a peer knows, its own bits and a pad of each OT: the ten bits of a party, its choices and what its pads
    differ by, are one to one with its five masks and five corrections. All 2^10 cases, as bits of planes."""
    count = 2 + BITS
    cases = np.unpackbits(np.arange(2**count, dtype=">u2").view(np.uint8).reshape(-1, 2), axis=1)[:, -count:]
    unknown = np.packbits(cases.T, axis=1, bitorder="little").view(np.uint64)  # (10, words)
    words = unknown.shape[1]
    for _ in range(20):
        known = np.where(random_words(2 + 2 * BITS, 1, 1) & np.uint64(1), ~np.uint64(0), np.uint64(0))
        known = np.broadcast_to(known, (2 + 2 * BITS, 1, words)).copy()
        peers_choices, peers_zeros, peers_offsets = known[:2], known[2 : 2 + BITS], known[2 + BITS :]
        own_choices, own_offsets = unknown[:2, None], unknown[2:, None]
        chosen = np.concatenate([np.repeat(peers_choices[:1], A_BITS, 0), np.repeat(peers_choices[1:], C_BITS, 0)])
        own_zeros = chosen & own_offsets  # so that the pads that the peer got are 0 in all cases
        sides = [(own_choices, peers_choices), (own_zeros, peers_zeros), (own_offsets, peers_offsets)]
        masks, corrections = exchanged(*([pair[own], pair[1 - own]] for pair in sides))
        seen = np.concatenate([masks[own][:5], corrections[own]])[:, 0]
        values = np.unpackbits(seen.view(np.uint8), axis=1, bitorder="little").astype(np.int64)
        assert np.unique((values << np.arange(count)[:, None]).sum(0)).size == 2**count
