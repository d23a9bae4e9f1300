"""The preprocessed randomness of a GMW ReLU batch (sphynx.core.gmw.Material) by OT extension.

Two OT sessions: in `down` the server is the OT sender, in `up` the client is. Messages:

    client -> server   request     down extensions: leaves (choices: the bits of x_c), nodes (random choices)
    server -> client   answer      late tweaks; up extension: nodes; corrections of (1), the first ones of (2)
    client -> server   conversion  down extension for bits to be made additive; corrections of (2) and (4)
    server -> client   corrections late tweak; the last corrections of (2); corrections of those products

What each OT yields, w for leaves, 2 for each node of two and for delta, 4 for each node of three, and up to 5 for (3):
    (1) leaf: the pads' bits give the server random masks and both parties shares of their products (digits.py).
    (2) node: of two, choice a_c against random (b_s, c_s) in `down`, a_s against random (b_c, c_c) in `up`; with the
        local a_s b_s and a_c b_c that is a shared triple (a; b, c; ab, ac). One such node more than the tree has
        serves as (delta; b1, b2; delta b1, delta b2). Of three: three_masks.py.
    (3) bit v = v_s + v_c - 2 v_s v_c for v = delta, b1, b2, delta b1, delta b2: one bit-by-ring product each, as
        wide as it is wanted (core/conversion.py). Where f = 0 there is no carry, and b1 = 0.
    (4) delta (alpha + X), X = x_c >> f: the high words of the delta node's pads. In `down` their difference u
        is random and defines alpha = (1 - 2 delta_s) u; in `up` the client corrects for (1 - 2 delta_c) X.

Semi-honest. Every value sent is masked by a fresh pad: a view is uniform but for the own choices.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sphynx.core import gmw, ot
from sphynx.core.bits import bit_values, pack_ring, unpack_ring
from sphynx.errors import SphynxError
from sphynx.program.cost.ot_messages import BLOCK_BYTES, blocks_down, blocks_up
from sphynx.program.extensions import SOFTSPOKEN, Extensions
from sphynx.protocol.ots import ClientOts, OtCount, ServerOts
from sphynx.protocol.three_masks import A_BITS, C_BITS, FIRST_ROWS, SECOND_ROWS, ThreeMasks
from sphynx.protocol.transport import Buffer

Words = NDArray[np.uint64]

_B1, _DELTA_B1 = 1, 3  # rows of a triple: a, b, c, ab, ac


@dataclass(frozen=True, repr=False)
class ServerMaterial:
    """All that the server of a gadget needs beside x_s."""

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


def offline_messages(shape: gmw.ReluShape, made: Extensions = SOFTSPOKEN) -> MessageBytes:
    return _Batch(shape, made).sizes


def ot_count(shape: gmw.ReluShape) -> OtCount:
    """Count the OTs of a batch."""
    batch = _Batch(shape)
    return OtCount(batch.leaf_ots + batch.node_ots + batch.conversion.ots, batch.node_ots)


class _Batch:
    """Sizes of one batch. OTs are counted in rows of whole words, so that their bits are planes. Those of nodes are in
    the order: of three, chosen by a; of three, chosen by c; of two; delta."""

    def __init__(self, shape: gmw.ReluShape, made: Extensions = SOFTSPOKEN) -> None:
        self.shape = shape
        self.row = 64 * shape.words
        self.digits = shape.digits
        self.threes = self.digits.tree.three_count
        self.node_rows = 2 * self.threes + self.digits.tree.pair_count + 1
        self.leaf_ots, self.node_ots = self.digits.bit_rows * self.row, self.node_rows * self.row
        self.conversion = shape.conversion
        self.leaf_blocks = blocks_down(self.leaf_ots, random_choices=False, made=made)
        self.node_blocks = blocks_down(self.node_ots, random_choices=True, made=made)
        self.node_blocks_up = blocks_up(self.node_ots, made=made)
        self.conversion_blocks = blocks_down(self.conversion.ots, random_choices=False, made=made)
        self.sizes = MessageBytes(
            request=BLOCK_BYTES * (self.leaf_blocks + self.node_blocks),
            answer=2 * ot.TWEAK_BYTES
            + BLOCK_BYTES * self.node_blocks_up
            + self.plane_bytes(self.digits.correction_rows + FIRST_ROWS * self.threes),
            conversion=BLOCK_BYTES * self.conversion_blocks
            + self.plane_bytes((FIRST_ROWS + SECOND_ROWS) * self.threes)
            + self.packed_bytes(shape.count),
            corrections=ot.TWEAK_BYTES + self.plane_bytes(SECOND_ROWS * self.threes) + self.conversion.correction_bytes,
        )

    def pairs(self, pads: Words) -> Words:
        """(2, nodes of two and delta, words): the bits of their pads that serve."""
        return pad_planes(pads[2 * self.threes * self.row :], 2, self.shape.words)

    def of_threes(self, pads: Words) -> Words:
        """(8, nodes of three, words), likewise."""
        each, words = self.threes * self.row, self.shape.words
        by_a, by_c = pads[:each], pads[each : 2 * each]
        return np.concatenate([pad_planes(by_a, A_BITS, words), pad_planes(by_c, C_BITS, words)])

    def taken(self, message: Buffer, start: int, *shapes: tuple[int, ...]) -> tuple[list[Words], int]:
        """Planes of these shapes, (*shape, words) each, of a message that was cut; and where they end."""
        parts = []
        for shape in shapes:
            planes = math.prod(shape)
            found = np.frombuffer(message, np.uint64, planes * self.shape.words, start)
            parts.append(found.reshape(*shape, self.shape.words))
            start += self.plane_bytes(planes)
        return parts, start

    def plane_bytes(self, rows: int) -> int:
        return rows * self.row // 8

    def last_row_words(self, pads: Words) -> Words:
        """The high words of the delta node's pads, one for each ReLU."""
        return np.ascontiguousarray(pads[-self.row :, 1])[: self.shape.count]

    def values(self, plane: Words) -> Words:
        return bit_values(plane)[: self.shape.count]

    def cut(self, message: Buffer, size: int, *blocks: int, start: int = 0) -> list[Words]:
        """The block arrays from `start` on of a message of `size` bytes."""
        if len(message) != size:
            raise SphynxError(
                f"a message of {len(message)} bytes where {size} were expected",
                where="GMW preprocessing",
                remedy="The peers disagree on the program or the connection is broken: start a new session.",
            )
        parts = []
        for count in blocks:
            parts.append(np.frombuffer(message, np.uint64, 2 * count, start).reshape(-1, 2))
            start += BLOCK_BYTES * count
        return parts

    def packed_bytes(self, values: int) -> int:
        return (values * self.shape.k + 7) // 8


def pad_planes(pads: Words, width: int, words: int) -> Words:
    """(width, rows, words): the low bits of the pads, each a pad of its own."""
    return ot.pad_planes(pads, width).reshape(width, -1, words)


def pair_masks(a: Words, offsets: Words, sent: Words, received: Words) -> Words:
    """(5, nodes, words): a, b, c, ab, ac from the own offsets (b, c) and the pads of both directions."""
    return np.concatenate([a[None], offsets, (a & offsets) ^ sent ^ received])


def _nodes(batch: _Batch, choices: Words, sent: ot.PadPair, received: Words) -> tuple[Words, ThreeMasks]:
    """The masks of nodes of two and of delta; those of three, which need corrections."""
    own = choices.reshape(batch.node_rows, batch.shape.words)
    zeros, ones = batch.pairs(sent.zeros), batch.pairs(sent.ones)
    triple = pair_masks(own[2 * batch.threes :], zeros ^ ones, zeros, batch.pairs(received))
    if not batch.shape.f:
        triple[[_B1, _DELTA_B1], -1] = 0
    a, c = own[: batch.threes], own[batch.threes : 2 * batch.threes]
    zeros, ones = batch.of_threes(sent.zeros), batch.of_threes(sent.ones)
    return triple, ThreeMasks(a, c, zeros, zeros ^ ones, batch.of_threes(received))


def _material(batch: _Batch, leaf_products: Words, triple: Words, threes: Words, arithmetic: Words) -> gmw.Material:
    return gmw.Material(
        leaf_products,
        np.ascontiguousarray(triple[:, :-1]),
        threes,
        np.ascontiguousarray(triple[:3, -1]),
        arithmetic & batch.shape.ring_mask,
    )


class GmwOfflineServer:
    """`ots` are shared with earlier and later batches."""

    def __init__(self, shape: gmw.ReluShape, ots: ServerOts) -> None:
        self._batch, self._down, self._up = _Batch(shape, ots.made), ots.down, ots.up
        self.sizes = self._batch.sizes

    def answer(self, request: Buffer) -> list[Buffer]:
        batch, down = self._batch, self._down
        leaf_message, node_message = batch.cut(request, self.sizes.request, batch.leaf_blocks, batch.node_blocks)
        leaf_tweak, pads_of_leaves = down.late_pads(leaf_message, batch.leaf_ots, random_choices=False)
        self._leaf_masks, self._leaf_products, leaf_corrections = batch.digits.masks(
            pads_of_leaves.zeros, pads_of_leaves.ones
        )

        node_tweak, node_pads = down.late_pads(node_message, batch.node_ots, random_choices=True)
        self._alpha_pads = (batch.last_row_words(node_pads.zeros), batch.last_row_words(node_pads.ones))
        message, choices, t = self._up.correlated_random(batch.node_ots)
        pads = ot.received_pads(t, self._up.early_tweak())
        self._triple, self._threes = _nodes(batch, choices, node_pads, pads)
        self._x_pads = batch.last_row_words(pads)
        first = self._threes.first_corrections
        return [leaf_tweak, node_tweak, message.data, leaf_corrections.tobytes(), first.tobytes()]

    def finish(self, conversion: Buffer) -> tuple[list[Buffer], ServerMaterial]:
        """(message to the client, the server's material)."""
        batch, shape = self._batch, self._batch.shape
        (request,) = batch.cut(conversion, self.sizes.conversion, batch.conversion_blocks)
        tweak, pads = self._down.late_pads(request, batch.conversion.ots, random_choices=False)
        bits = np.ascontiguousarray(self._triple[:, -1])
        corrections, converted = batch.conversion.send(pads, bits)

        delta = batch.values(bits[0])
        sign = np.uint64(1) - np.uint64(2) * delta
        zeros, ones = self._alpha_pads
        alpha = (sign * (ones - zeros)) & shape.ring_mask
        # delta_s X' for the client's X' = (1 - 2 delta_c) X: a pad, corrected where delta_s is 1
        shapes = ((FIRST_ROWS, batch.threes), (SECOND_ROWS, batch.threes))
        (first, second), end = batch.taken(conversion, BLOCK_BYTES * batch.conversion_blocks, *shapes)
        self._threes.hear_first(first)
        packed = np.frombuffer(conversion, np.uint8, offset=end)
        correction = unpack_ring(packed, shape.k, shape.count)
        delta_v = delta * alpha - zeros + self._x_pads + delta * correction
        arithmetic = np.concatenate([converted[:, : shape.count], delta_v[None]])
        threes = self._threes.masks(second)
        shares = _material(batch, self._leaf_products, self._triple, threes, arithmetic)
        message: list[Buffer] = [tweak, self._threes.second_corrections.tobytes(), corrections.data]
        return message, ServerMaterial(shares, self._leaf_masks, alpha)


class GmwOfflineClient:
    """x_c is the client's share, known before the inference."""

    def __init__(self, shape: gmw.ReluShape, ots: ClientOts, x_c: Words) -> None:
        self._batch, self._down, self._up = _Batch(shape, ots.made), ots.down, ots.up
        self.sizes = self._batch.sizes
        self._own = self._batch.digits.bits(x_c)
        self._truncated = (x_c & np.uint64(2**shape.w - 1)) >> np.uint64(shape.f)

    def request(self) -> list[Buffer]:
        batch, down = self._batch, self._down
        leaf_message, self._leaf_t = down.correlated(self._own.reshape(-1), batch.leaf_ots)
        node_message, self._choices, self._node_t = down.correlated_random(batch.node_ots)
        return [leaf_message.data, node_message.data]

    def conversion(self, answer: Buffer) -> list[Buffer]:
        batch, shape = self._batch, self._batch.shape
        start = 2 * ot.TWEAK_BYTES
        (message,) = batch.cut(answer, self.sizes.answer, batch.node_blocks_up, start=start)
        shapes = ((batch.digits.correction_rows,), (FIRST_ROWS, batch.threes))
        (corrections, first), _ = batch.taken(answer, start + BLOCK_BYTES * batch.node_blocks_up, *shapes)
        leaf_tweak, node_tweak = bytes(answer[: ot.TWEAK_BYTES]), bytes(answer[ot.TWEAK_BYTES : start])
        leaves = ot.received_pads(self._leaf_t, leaf_tweak)
        self._leaf_products = batch.digits.products(leaves, self._own, corrections)
        received = ot.received_pads(self._node_t, node_tweak)
        self._alpha_pads = batch.last_row_words(received)
        pads = self._up.early_pads(message, batch.node_ots, random_choices=True)
        self._triple, self._threes = _nodes(batch, self._choices, pads, received)
        del self._leaf_t, self._node_t
        self._threes.hear_first(first)

        sign = np.uint64(1) - np.uint64(2) * batch.values(self._triple[0, -1])
        zeros, ones = batch.last_row_words(pads.zeros), batch.last_row_words(pads.ones)
        self._x_share = -zeros
        correction = zeros + sign * self._truncated - ones

        self._bits = np.ascontiguousarray(self._triple[:, -1])
        chosen = batch.conversion.choices(self._bits)
        request, self._conversion_t = self._down.correlated(chosen, batch.conversion.ots)
        return [
            request.data,
            self._threes.first_corrections.tobytes(),
            self._threes.second_corrections.tobytes(),
            pack_ring(correction & shape.ring_mask, shape.k).data,
        ]

    def finish(self, corrections: Buffer) -> gmw.Material:
        batch, shape = self._batch, self._batch.shape
        batch.cut(corrections, self.sizes.corrections)
        (second,), end = batch.taken(corrections, ot.TWEAK_BYTES, (SECOND_ROWS, batch.threes))
        packed = np.frombuffer(corrections, np.uint8, offset=end)
        pads = ot.received_pads(self._conversion_t, bytes(corrections[: ot.TWEAK_BYTES]))
        converted = batch.conversion.receive(pads, self._bits, packed)
        delta = batch.values(self._triple[0, -1])
        delta_v = delta * self._truncated + self._alpha_pads + self._x_share
        arithmetic = np.concatenate([converted[:, : shape.count], delta_v[None]])
        threes = self._threes.masks(second)
        return _material(batch, self._leaf_products, self._triple, threes, arithmetic)
