"""Exact truncation x >> f of shared x, 0 <= x < 2^(w-1), by GMW: a ReLU's carry gadget without its sign.

With x_s, x_c read as w-bit integers, c the carry into bit f and wrap = msb_s or msb_c (right as x's own top bit is 0):

    x >> f = (x_s >> f) + (x_c >> f) + c - wrap 2^(w-f)

Only the low f bits and the top bit of the shares enter the carry tree, so this is the tree of a ReLU on f + 1 bits.
The client's share of x is known before the inference; its share of the result is a mask of its choice.

    offline  client -> server   request   OT extensions: leaves (choices: bits of x_c); nodes, b1, b2 (random choices)
             server -> client   answer    late tweaks; OT extension: nodes; corrections of leaves and two products
    online   server -> client   masked codes of the digits of f + 1 bits (sphynx.core.digits)
             both, by turns     masked p, g, p of each level of the tree; c xor b1, wrap xor b2
             client -> server   y_c less the new mask

Bits b = b_s xor b_c become additive as b_s + b_c - 2 b_s b_c, each product as wide as it is wanted
(core/conversion.py). Semi-honest: all that is sent is masked by a fresh pad.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sphynx.core import _native, ot
from sphynx.core.bits import plane_words
from sphynx.core.conversion import Conversion
from sphynx.core.digits import Digits, digits_of
from sphynx.core.gmw import TRUNCATION_ARITY, planned_gadget, truncation_conversion
from sphynx.program.cost.ot_messages import BLOCK_BYTES, blocks_down, blocks_up
from sphynx.program.extensions import Extensions
from sphynx.protocol.channel import Channel
from sphynx.protocol.gmw_material import pad_planes, pair_masks
from sphynx.protocol.ots import ClientOts, OtCount, ServerOts
from sphynx.protocol.relu_layer import Arrays, Words
from sphynx.protocol.transport import Buffer
from sphynx.protocol.turns import follow, lead

_WORD_BYTES = 8


@dataclass(frozen=True)
class Truncation:
    """Public: 2 <= w <= k <= 64, 1 <= f < w."""

    w: int
    k: int
    f: int
    count: int

    @property
    def words(self) -> int:
        return plane_words(self.count)

    @property
    def row(self) -> int:
        """OTs in a plane: whole words."""
        return 64 * self.words

    @property
    def digits(self) -> Digits:
        """Digits of the low f bits, and the share's top bit. In a tree of pairs: masks of more take four messages."""
        return digits_of(self.f + 1, 0, self.w - 1, TRUNCATION_ARITY)

    @property
    def gadget(self) -> _native.GmwGadget:
        return planned_gadget(False, self.w, self.k, self.f, self.count)

    @property
    def leaf_ots(self) -> int:
        return self.digits.bit_rows * self.row

    @property
    def leaf_correction_bytes(self) -> int:
        return self.digits.correction_rows * self.row // 8

    @property
    def node_ots(self) -> int:
        return self.digits.tree.pair_count * self.row

    @property
    def uses_up(self) -> bool:
        """Return whether the OTs of `up` are needed: nodes of the tree need them."""
        return self.node_ots > 0

    @property
    def conversion(self) -> Conversion:
        """Make b1 and b2 additive; b2's is multiplied by 2^(w-f)."""
        return truncation_conversion(self.w, self.k, self.f, self.words)

    @property
    def ot_count(self) -> OtCount:
        return OtCount(self.leaf_ots + self.node_ots + self.conversion.ots, self.node_ots)

    def blocks(self, made: Extensions) -> tuple[int, int, int]:
        """Message blocks of the extensions: leaves, nodes with bits, nodes alone."""
        return (
            blocks_down(self.leaf_ots, random_choices=False, made=made),
            blocks_down(self.node_ots + self.conversion.ots, random_choices=True, made=made),
            blocks_up(self.node_ots, made=made) if self.node_ots else 0,
        )

    def request_bytes(self, made: Extensions) -> int:
        leaf_blocks, node_blocks, _ = self.blocks(made)
        return BLOCK_BYTES * (leaf_blocks + node_blocks)

    def answer_bytes(self, made: Extensions) -> int:
        corrections = self.leaf_correction_bytes + self.conversion.correction_bytes
        return 2 * ot.TWEAK_BYTES + BLOCK_BYTES * self.blocks(made)[2] + corrections

    def planes(self, pads: Words, width: int) -> Words:
        return pad_planes(pads, width, self.words)


def answer_truncation(plan: Truncation, ots: ServerOts, request: bytearray) -> tuple[list[Buffer], Arrays]:
    """(message to the client, the server's material)."""
    leaf_blocks, node_blocks, _ = plan.blocks(ots.made)
    message = np.frombuffer(request, np.uint64).reshape(leaf_blocks + node_blocks, 2)
    leaf_tweak, pads_of_leaves = ots.down.late_pads(message[:leaf_blocks], plan.leaf_ots, random_choices=False)
    masks_of_leaves, leaf_products, leaf_corrections = plan.digits.masks(pads_of_leaves.zeros, pads_of_leaves.ones)
    conversion, count = plan.conversion, plan.node_ots + plan.conversion.ots
    node_tweak, pads = ots.down.late_pads(message[leaf_blocks:], count, random_choices=True)

    bits = np.empty((conversion.rows, plan.words), np.uint64)
    ots.prg.fill_words(bits.reshape(-1))
    bit_pads = ot.PadPair(pads.zeros[plan.node_ots :], pads.ones[plan.node_ots :])
    corrections, converted = conversion.send(bit_pads, bits)

    sent = plan.planes(pads.zeros[: plan.node_ots], 2)
    offsets = sent ^ plan.planes(pads.ones[: plan.node_ots], 2)
    up_message, choices, received = b"", np.empty(0, np.uint64), np.empty((0, 2), np.uint64)
    if plan.node_ots:
        extension, choices, t = ots.up.correlated_random(plan.node_ots)
        up_message, received = extension.tobytes(), ot.received_pads(t, ots.up.early_tweak())
    masks = pair_masks(choices.reshape(offsets.shape[1:]), offsets, sent, plan.planes(received, 2))
    material = _material(plan, leaf_products, masks, bits, converted)
    answer: list[Buffer] = [leaf_tweak, node_tweak, up_message, leaf_corrections.tobytes(), corrections.data]
    return answer, material | {"leaf_masks": masks_of_leaves}


class TruncationRequest:
    """The client's side of the preprocessing: send `message`, then `finish` with the answer."""

    def __init__(self, plan: Truncation, ots: ClientOts, x_c: Words) -> None:
        self._plan, self._ots = plan, ots
        self._own = plan.digits.bits(x_c)
        leaf_message, self._leaf_t = ots.down.correlated(self._own.reshape(-1), plan.leaf_ots)
        node_message, self._choices, self._node_t = ots.down.correlated_random(plan.ot_count.down - plan.leaf_ots)
        self.message: list[Buffer] = [leaf_message.data, node_message.data]

    def finish(self, answer: bytearray) -> Arrays:
        plan, up = self._plan, self._ots.up
        up_blocks, node_words = plan.blocks(self._ots.made)[2], plan.node_ots // 64
        bits = self._choices[node_words:].reshape(-1, plan.words)
        up_start = 2 * ot.TWEAK_BYTES
        leaf_tweak, node_tweak = bytes(answer[: ot.TWEAK_BYTES]), bytes(answer[ot.TWEAK_BYTES : up_start])
        leaves = ot.received_pads(self._leaf_t, leaf_tweak)
        received = ot.received_pads(self._node_t, node_tweak)
        leaf_start = up_start + BLOCK_BYTES * up_blocks
        leaf_corrections = np.frombuffer(answer, np.uint64, plan.leaf_correction_bytes // _WORD_BYTES, leaf_start)
        leaf_products = plan.digits.products(leaves, self._own, leaf_corrections.reshape(-1, plan.words))
        packed = np.frombuffer(answer, np.uint8, offset=leaf_start + plan.leaf_correction_bytes)
        converted = plan.conversion.receive(received[plan.node_ots :], bits, packed)
        pads = ot.PadPair(np.empty((0, 2), np.uint64), np.empty((0, 2), np.uint64))
        if plan.node_ots:
            message = np.frombuffer(answer, np.uint64, 2 * up_blocks, up_start).reshape(-1, 2)
            pads = up.early_pads(message, plan.node_ots, random_choices=True)
        sent = plan.planes(pads.zeros, 2)
        offsets = sent ^ plan.planes(pads.ones, 2)
        own_a = self._choices[:node_words].reshape(offsets.shape[1:])
        masks = pair_masks(own_a, offsets, sent, plan.planes(received[: plan.node_ots], 2))
        return _material(plan, leaf_products, masks, bits, converted)


def truncate_server(channel: Channel, plan: Truncation, material: Arrays, x: Words) -> Words:
    """The server's share of x >> f, the client's being its new mask."""
    return lead(channel, plan.gadget.server(x, **material), plan.count)


def truncate_client(channel: Channel, plan: Truncation, material: Arrays, x: Words, new_mask: Words) -> None:
    follow(channel, plan.gadget.client(x, **material, new_mask=new_mask))


def _material(plan: Truncation, leaf_products: Words, masks: Words, bits: Words, converted: Words) -> Arrays:
    return {
        "leaf_products": leaf_products,
        "pair_masks": masks,
        "three_masks": np.empty((0, plan.words), np.uint64),
        "bits": bits,
        "arithmetic": np.ascontiguousarray(converted[:, : plan.count]),
    }
