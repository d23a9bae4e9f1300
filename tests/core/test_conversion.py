"""Bits made additive, each modulo a power of two of its own."""

import numpy as np
import pytest

from sphynx.core import ot
from sphynx.core.bits import bit_values
from sphynx.core.conversion import Conversion
from tests.core.test_ot import connected

WORDS = 3


@pytest.mark.parametrize("product_bits", [(31, 0, 7), (0, 63), (1, 1, 1)])
def test_shares_add_up_to_the_bits(product_bits: tuple[int, ...]) -> None:
    conversion, draw = Conversion(product_bits, WORDS), np.random.default_rng(4)
    own, other = draw.integers(0, 2**64, (2, len(product_bits), WORDS), np.uint64)
    receiver, sender, _ = connected(4)
    message, t = receiver.correlated(conversion.choices(other), conversion.ots)
    tweak, pads = sender.late_pads(message, conversion.ots, random_choices=False)
    corrections, served = conversion.send(pads, own)
    asked = conversion.receive(ot.received_pads(t, tweak), other, corrections)
    assert corrections.nbytes == conversion.correction_bytes == 8 * WORDS * sum(product_bits)
    for width, bits, share, rest in zip(product_bits, bit_values(own ^ other), served, asked, strict=True):
        assert np.array_equal((share + rest) & np.uint64((2 << width) - 1), bits)
