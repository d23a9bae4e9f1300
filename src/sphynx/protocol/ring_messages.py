"""Tensors of ring elements on the wire: k bits for each, one behind the other."""

from __future__ import annotations

import numpy as np

from sphynx.core.bits import pack_ring, unpack_ring
from sphynx.program.ir import Program
from sphynx.protocol.channel import Channel
from sphynx.protocol.shares import Ring, Words, ring_mask


def send_tensor(channel: Channel, program: Program, tensor: Ring) -> None:
    words = np.ascontiguousarray(tensor.reshape(-1).astype(np.uint64))
    channel.send(pack_ring(words & ring_mask(program), program.ring_bits).data)


def receive_tensor(channel: Channel, program: Program, shape: tuple[int, ...]) -> Words:
    count = int(np.prod(shape))
    message = channel.receive((count * program.ring_bits + 7) // 8)
    return unpack_ring(np.frombuffer(message, np.uint8), program.ring_bits, count).reshape(shape)
