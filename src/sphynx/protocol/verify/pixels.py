"""The proof that a masked input is one of the program's integers: committed random bits offline, as many bits online as
a value has and one more: nine for an 8-bit pixel.

The client's message m = x - r mod 2^k is x - r + 2^k c, where c says whether it wrapped around. Offline OTs commit the
client to random bits b, and give both parties shares of each bit's product with secret factors phi; online the client
says d = (bits of x, c) xor b, so that each bit is d + (1 - 2 d) b. Then

    sum over values of phi (sum of 2^i x_i + 2^k c - r - m) = 0  modulo 2^K

is a sum of known numbers and shares; the client's part of it goes into the hash that it sends at the end. A value
of more bits has no such bits. Without this, a client that sends 2^(w-1) in one pixel reads parities of weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sphynx.core import Prg, ot
from sphynx.core.bits import bit_values, plane_words, slice_bits
from sphynx.program.cost.ot_messages import BLOCK_BYTES, blocks_down
from sphynx.program.extensions import Extensions
from sphynx.program.ir import Program
from sphynx.protocol.channel import Channel
from sphynx.protocol.ots import ClientOts, ServerOts
from sphynx.protocol.relu_layer import Arrays
from sphynx.protocol.verify import products
from sphynx.protocol.verify.plan import CheckPlan
from sphynx.protocol.wires import Words

_WORD_BYTES = 8


@dataclass(frozen=True)
class PixelCheck:
    """Public. `count` values of all images, of `value_bits` each."""

    count: int
    value_bits: int
    ring_bits: int  # k
    plan: CheckPlan

    @classmethod
    def planned(cls, program: Program, plan: CheckPlan, images: int) -> PixelCheck:
        return cls(images * program.image.size, program.input.bits, program.ring_bits, plan)

    @property
    def bits(self) -> int:
        """Bits of each value, and whether the masked value wrapped around."""
        return self.value_bits + 1

    @property
    def weights(self) -> tuple[int, ...]:
        """Each bit stands for 2 to the power of this."""
        return (*range(self.value_bits), self.ring_bits)

    @property
    def planes_bytes(self) -> int:
        """Bytes of the online message: planes of whole words."""
        return self.bits * plane_words(self.count) * _WORD_BYTES

    @property
    def ots(self) -> int:
        return self.bits * self.count

    def request_bytes(self, made: Extensions) -> int:
        return BLOCK_BYTES * blocks_down(self.ots, random_choices=True, made=made)

    @property
    def products_bytes(self) -> int:
        part = sum((self.count * width + 7) // 8 for width in self._widths)
        return products.tweaks_bytes(self.plan.functionals) + self.plan.functionals * part

    @property
    def _widths(self) -> tuple[int, ...]:
        return tuple(self.plan.ring_bits - weight for weight in self.weights)

    def server(self, channel: Channel, ots: ServerOts, factors: Words) -> Arrays:
        """Offline, `factors` (functionals, pixels): `shares` of their products with the bits, (t, bits, pixels)."""
        request = np.frombuffer(channel.receive(self.request_bytes(ots.made)), np.uint64).reshape(-1, 2)
        labels = ots.down.correlated(request, self.ots, random_choices=True)
        shares = np.empty((self.plan.functionals, self.bits, self.count), np.uint64)
        tweaks, all_pads = products.sender_pads(ots, labels, self.plan.functionals)
        message = bytearray(tweaks)
        for own, factor, pads in zip(shares, factors, all_pads, strict=True):
            by_bit = zip(self._by_bit(pads.zeros), self._by_bit(pads.ones), self._widths, strict=True)
            for bit, (low, high, width) in enumerate(by_bit):
                part, own[bit] = ot.send_products(ot.PadPair(low, high), factor, width)
                message += part.data
        channel.send(message)
        return {"factors": factors, "shares": shares}

    def request(self, channel: Channel, ots: ClientOts) -> tuple[Words, Words]:
        """Offline: (bits, labels), bits as planes (bits, words)."""
        message, choices, labels = ots.down.correlated_random(self.ots)
        channel.send(message.data)
        return choices, labels

    def client(self, channel: Channel, choices: Words, labels: Words) -> Arrays:
        message = memoryview(channel.receive(self.products_bytes))
        shares = np.empty((self.plan.functionals, self.bits, self.count), np.uint64)
        bits = bit_values(choices)[: self.bits * self.count].reshape(self.bits, self.count)
        planes = np.stack([slice_bits(row, 1)[0] for row in bits])
        at = products.tweaks_bytes(self.plan.functionals)
        all_pads = products.receiver_pads(labels, message[:at], self.plan.functionals)
        for own, pads in zip(shares, all_pads, strict=True):
            for bit, (blocks, width) in enumerate(zip(self._by_bit(pads), self._widths, strict=True)):
                part = np.frombuffer(message[at : at + (self.count * width + 7) // 8], np.uint8)
                at += part.size
                own[bit] = ot.receive_products(blocks, planes[bit], part, width)
        return {"bits": planes, "shares": shares}

    def say(self, material: Arrays, pixels: Words, mask: Words) -> tuple[bytes, list[int]]:
        """Online, the client: (its message, its part of each sum), without its mask's part."""
        wrapped = (pixels < mask).astype(np.uint64)
        true = np.concatenate([slice_bits(pixels, self.value_bits), slice_bits(wrapped, 1)])
        bits: Words = material["bits"]
        said = true ^ bits
        return said.tobytes(), list(self._sums(material["shares"], said))

    def hear(self, material: Arrays, message: bytearray, masked: Words) -> list[int]:
        """Online, the server: its part of each sum, without the mask's."""
        said = np.frombuffer(message, np.uint64).reshape(self.bits, -1)
        bits = bit_values(said)[:, : self.count]
        known = np.uint64(0) - masked
        for bit, weight in enumerate(self.weights):
            known = known + (bits[bit] << np.uint64(weight))
        plain = [int((factors * known).sum(dtype=np.uint64)) for factors in material["factors"]]
        return [total + part for total, part in zip(self._sums(material["shares"], said), plain, strict=True)]

    def _sums(self, shares: Words, said: Words) -> Iterator[int]:
        """The shares of all bits: those that the message inverts are taken away."""
        signs = np.uint64(1) - (bit_values(said)[:, : self.count] << np.uint64(1))
        for own in shares:
            rows = (own * signs).sum(axis=1, dtype=np.uint64)
            yield sum(int(row) << weight for row, weight in zip(rows, self.weights, strict=True))

    def _by_bit(self, blocks: Words) -> Words:
        return blocks.reshape(self.bits, self.count, 2)


def draw_pixel_factors(check: PixelCheck, prg: Prg) -> Words:
    factors = np.empty((check.plan.functionals, check.count), np.uint64)
    prg.fill_words(factors.reshape(-1))
    return factors
