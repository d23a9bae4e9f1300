"""The preprocessed randomness of a GMW ReLU batch (sphynx.core.gmw.Material) by OT extension.

Two OT sessions: in `down` the server is the OT sender, in `up` the client is. Messages:

    client -> server   request     down extensions: leaves (choices: terms of x_c), nodes (random choices)
    server -> client   answer      up extension: nodes; corrections of (1)
    client -> server   conversion  down extension for five bits to be made additive, the correction of (4)
    server -> client   finish      corrections of those five products

What each OT yields, about 3 w / 2 + 2 (inner + 1) + 5 of them per ReLU:
    (1) leaf: the pads' bits give the server random masks and both parties shares of their products (digits.py).
    (2) node: choice a_c against random (b_s, c_s) in `down`, a_s against random (b_c, c_c) in `up`; with the
        local a_s b_s and a_c b_c that is a shared triple (a; b, c; ab, ac). One node more than the tree has
        serves as (delta; b1, b2; delta b1, delta b2).
    (3) bit v = v_s + v_c - 2 v_s v_c for v = delta, b1, b2, delta b1, delta b2: one bit-by-ring product each.
    (4) delta (alpha + X), X = x_c >> f: the high words of the delta node's pads. In `down` their difference u
        is random and defines alpha = (1 - 2 delta_s) u; in `up` the client corrects for (1 - 2 delta_c) X.

Semi-honest. Every value sent is masked by a fresh pad: a view is uniform but for the own choices.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sphynx.core import gmw, ot
from sphynx.core.bits import pack_ring, unpack_ring
from sphynx.core.digits import Digits
from sphynx.errors import SphynxError
from sphynx.protocol.ots import SOFTSPOKEN_PARAMETER
from sphynx.protocol.transport import Buffer

Words = NDArray[np.uint64]

CONVERTED_BITS = 5
_BLOCK_BYTES = 16


@dataclass(frozen=True, repr=False)
class ServerMaterial:
    """All that sphynx.core.gmw.ReluServer needs beside the shape and x_s."""

    shares: gmw.Material
    leaf_masks: Words
    alpha: Words


@dataclass(frozen=True)
class MessageBytes:
    """Exact sizes of the four messages of a batch."""

    request: int
    answer: int
    conversion: int
    corrections: int

    @property
    def total(self) -> int:
        return self.request + self.answer + self.conversion + self.corrections


def offline_messages(shape: gmw.ReluShape) -> MessageBytes:
    return _Batch(shape).sizes


class _Batch:
    """Sizes of one batch. OTs are counted in rows of whole words, so that their bits are planes."""

    def __init__(self, shape: gmw.ReluShape) -> None:
        self.shape = shape
        self.row = 64 * shape.words
        self.digits = shape.digits
        self.nodes = self.digits.tree.inner_count + 1
        self.leaf_ots, self.node_ots = self.digits.term_rows * self.row, self.nodes * self.row
        self.conversion_ots = CONVERTED_BITS * self.row
        leaf, conversion = (_extension_blocks(n, random=False) for n in (self.leaf_ots, self.conversion_ots))
        node = _extension_blocks(self.node_ots, random=True)
        self.leaf_blocks, self.node_blocks, self.conversion_blocks = leaf, node, conversion
        self.sizes = MessageBytes(
            request=_BLOCK_BYTES * (leaf + node),
            answer=_BLOCK_BYTES * node + self.digits.correction_rows * self.row // 8,
            conversion=_BLOCK_BYTES * conversion + self.packed_bytes(shape.count),
            corrections=self.packed_bytes(self.conversion_ots),
        )

    def planes(self, pads: Words, width: int) -> Words:
        return pad_planes(pads, width, self.shape.words)

    def last_row_words(self, pads: Words) -> Words:
        """The high words of the delta node's pads, one for each ReLU."""
        return np.ascontiguousarray(pads[-self.row :, 1])[: self.shape.count]

    def values(self, plane: Words) -> Words:
        bits = np.unpackbits(plane.view(np.uint8), bitorder="little")
        return bits[: self.shape.count].astype(np.uint64)

    def cut(self, message: Buffer, size: int, *blocks: int) -> list[Words]:
        """The block arrays at the front of a message of `size` bytes."""
        if len(message) != size:
            raise SphynxError(
                f"a message of {len(message)} bytes where {size} were expected",
                where="GMW preprocessing",
                remedy="The peers disagree on the program or the connection is broken: start a new session.",
            )
        parts, start = [], 0
        for count in blocks:
            parts.append(np.frombuffer(message, np.uint64, 2 * count, start).reshape(-1, 2))
            start += _BLOCK_BYTES * count
        return parts

    def packed_bytes(self, values: int) -> int:
        return (values * self.shape.k + 7) // 8


def _extension_blocks(ots: int, *, random: bool) -> int:
    return ot.message_blocks(SOFTSPOKEN_PARAMETER, ots, random_choices=random)


def pad_planes(pads: Words, width: int, words: int) -> Words:
    """(width, rows, words): the low bits of the pads, each a pad of its own."""
    return ot.pad_planes(pads, width).reshape(width, -1, words)


def leaf_masks(digits: Digits, pads: ot.PadPair, words: int) -> tuple[Words, Words, Words]:
    """The server's masks, share of the products, and corrections, as `Digits.masks`."""
    return digits.masks(pad_planes(pads.zeros, 2, words), pad_planes(pads.ones, 2, words))


def node_masks(a: Words, offsets: Words, sent: Words, received: Words) -> Words:
    """(5, nodes, words): a, b, c, ab, ac from the own offsets (b, c) and the pads of both directions."""
    return np.concatenate([a[None], offsets, (a & offsets) ^ sent ^ received])


def _material(batch: _Batch, leaf_products: Words, triple: Words, arithmetic: Words) -> gmw.Material:
    return gmw.Material(
        leaf_products,
        np.ascontiguousarray(triple[:, :-1]),
        np.ascontiguousarray(triple[:3, -1]),
        arithmetic & batch.shape.ring_mask,
    )


class GmwOfflineServer:
    """`down`: an OtSender, `up`: an OtReceiver, both shared with earlier and later batches."""

    def __init__(self, shape: gmw.ReluShape, down: ot.OtSender, up: ot.OtReceiver) -> None:
        self._batch, self._down, self._up = _Batch(shape), down, up
        self.sizes = self._batch.sizes

    def answer(self, request: Buffer) -> list[Buffer]:
        batch, down = self._batch, self._down
        leaf_message, node_message = batch.cut(request, self.sizes.request, batch.leaf_blocks, batch.node_blocks)
        leaf_pads = down.pads(down.correlated(leaf_message, batch.leaf_ots, random_choices=False))
        self._leaf_masks, self._leaf_products, leaf_corrections = leaf_masks(batch.digits, leaf_pads, batch.shape.words)

        node_pads = down.pads(down.correlated(node_message, batch.node_ots, random_choices=True))
        sent = batch.planes(node_pads.zeros, 2)
        offsets = sent ^ batch.planes(node_pads.ones, 2)
        self._alpha_pads = (batch.last_row_words(node_pads.zeros), batch.last_row_words(node_pads.ones))

        message, choices, t = self._up.correlated_random(batch.node_ots)
        pads = self._up.pads(t)
        a = choices.reshape(batch.nodes, batch.shape.words)
        self._triple = node_masks(a, offsets, sent, batch.planes(pads, 2))
        self._x_pads = batch.last_row_words(pads)
        return [message.data, leaf_corrections.tobytes()]

    def finish(self, conversion: Buffer) -> tuple[Buffer, ServerMaterial]:
        """(message to the client, the server's material)."""
        batch, shape = self._batch, self._batch.shape
        (request,) = batch.cut(conversion, self.sizes.conversion, batch.conversion_blocks)
        pads = self._down.pads(self._down.correlated(request, batch.conversion_ots, random_choices=False))
        bits = self._triple[:, -1]
        own = np.unpackbits(np.ascontiguousarray(bits).view(np.uint8), bitorder="little").astype(np.uint64)
        corrections, products = ot.send_products(pads, own, shape.k)
        converted = (own - np.uint64(2) * products).reshape(CONVERTED_BITS, -1)[:, : shape.count]

        delta = batch.values(bits[0])
        sign = np.uint64(1) - np.uint64(2) * delta
        zeros, ones = self._alpha_pads
        alpha = (sign * (ones - zeros)) & shape.ring_mask
        # delta_s X' for the client's X' = (1 - 2 delta_c) X: a pad, corrected where delta_s is 1
        packed = np.frombuffer(conversion, np.uint8, offset=_BLOCK_BYTES * batch.conversion_blocks)
        correction = unpack_ring(packed, shape.k, shape.count)
        delta_v = delta * alpha - zeros + self._x_pads + delta * correction
        arithmetic = np.concatenate([converted, delta_v[None]])
        shares = _material(batch, self._leaf_products, self._triple, arithmetic)
        return corrections.data, ServerMaterial(shares, self._leaf_masks, alpha)


class GmwOfflineClient:
    """`down`: an OtReceiver, `up`: an OtSender. x_c is the client's share, known before the inference."""

    def __init__(self, shape: gmw.ReluShape, down: ot.OtReceiver, up: ot.OtSender, x_c: Words) -> None:
        self._batch, self._down, self._up = _Batch(shape), down, up
        self.sizes = self._batch.sizes
        self._terms = self._batch.digits.terms(x_c)
        self._truncated = (x_c & np.uint64(2**shape.w - 1)) >> np.uint64(shape.f)

    def request(self) -> list[Buffer]:
        batch, down = self._batch, self._down
        leaf_message, t = down.correlated(self._terms.reshape(-1), batch.leaf_ots)
        self._leaf_pads = batch.planes(down.pads(t), 2)
        node_message, choices, t = down.correlated_random(batch.node_ots)
        pads = down.pads(t)
        self._a = choices.reshape(batch.nodes, batch.shape.words)
        self._received = batch.planes(pads, 2)
        self._alpha_pads = batch.last_row_words(pads)
        return [leaf_message.data, node_message.data]

    def conversion(self, answer: Buffer) -> list[Buffer]:
        batch, shape = self._batch, self._batch.shape
        (message,) = batch.cut(answer, self.sizes.answer, batch.node_blocks)
        corrections = np.frombuffer(answer, np.uint64, offset=_BLOCK_BYTES * batch.node_blocks)
        self._leaf_products = batch.digits.products(self._leaf_pads, self._terms, corrections.reshape(-1, shape.words))
        pads = self._up.pads(self._up.correlated(message, batch.node_ots, random_choices=True))
        sent = batch.planes(pads.zeros, 2)
        offsets = sent ^ batch.planes(pads.ones, 2)
        self._triple = node_masks(self._a, offsets, sent, self._received)

        sign = np.uint64(1) - np.uint64(2) * batch.values(self._triple[0, -1])
        zeros, ones = batch.last_row_words(pads.zeros), batch.last_row_words(pads.ones)
        self._x_share = -zeros
        correction = zeros + sign * self._truncated - ones

        self._bits = np.ascontiguousarray(self._triple[:, -1]).reshape(-1)
        request, t = self._down.correlated(self._bits, batch.conversion_ots)
        self._conversion_pads = self._down.pads(t)
        return [request.data, pack_ring(correction & shape.ring_mask, shape.k).data]

    def finish(self, corrections: Buffer) -> gmw.Material:
        batch, shape = self._batch, self._batch.shape
        batch.cut(corrections, self.sizes.corrections)
        products = ot.receive_products(self._conversion_pads, self._bits, np.frombuffer(corrections, np.uint8), shape.k)
        own = np.unpackbits(self._bits.view(np.uint8), bitorder="little").astype(np.uint64)
        converted = (own - np.uint64(2) * products).reshape(CONVERTED_BITS, -1)[:, : shape.count]
        delta = batch.values(self._triple[0, -1])
        delta_v = delta * self._truncated + self._alpha_pads + self._x_share
        arithmetic = np.concatenate([converted, delta_v[None]])
        return _material(batch, self._leaf_products, self._triple, arithmetic)
