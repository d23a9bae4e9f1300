"""Prepared weights in memory that several processes share: a memfd that nobody can change any more.

    64 bytes    magic, SHA-256 of what the values were made from, their number
    int32 ...   the values of every prepared map, in the order of the program

One process prepares and writes them; others map the same pages and read. The key covers the weights, the program, the
parameters of the encryption, which maps are held and the path of the kernels, so that a file of other values is
refused. Linux only.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import struct
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from sphynx import system
from sphynx.core import rlwe
from sphynx.errors import SphynxError
from sphynx.program.convolve import Array
from sphynx.program.folder import content_hash
from sphynx.program.ir import Program
from sphynx.protocol.linear import ServerModel
from sphynx.protocol.verify.plan import CheckPlan

MAGIC = b"sphynxpw"
HEADER = struct.Struct("<8s32sQ16x")  # 64 bytes: the values begin at a cache line


def write_shared(model: ServerModel, weights: Mapping[str, Array]) -> int:
    """The descriptor of a sealed memfd with the model's prepared weights; the caller closes it."""
    model.maps_for_groups()  # now: workers could not share what each would prepare later
    count = model.prepared_bytes // 4
    descriptor = system.make_sealed_memory("sphynx-weights", HEADER.size + 4 * count)
    try:
        with mmap.mmap(descriptor, 0) as memory:
            HEADER.pack_into(memory, 0, MAGIC, _key(model, weights), count)
            at = HEADER.size
            for prepared in model.prepared:
                at = prepared.copy_values(memory, at)
        system.seal(descriptor)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def read_shared(
    descriptor: int,
    program: Program,
    weights: Mapping[str, Array],
    *,
    threads: int = 0,
    memory_bytes: int | None = None,
    check: CheckPlan | None = None,
) -> ServerModel:
    """A model whose prepared weights are those of the memfd, not copies; it has as much memory for them, and checks
    clients in the same way."""
    if not system.is_sealed(descriptor):
        raise _unusable("it can still be changed")
    # Private, because Linux before 6.7 refuses shared mappings of what is sealed. Nobody writes: the pages stay shared.
    memory = mmap.mmap(descriptor, 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)  # lives as long as the arrays of it
    magic, key, count = HEADER.unpack_from(memory)
    if magic != MAGIC or len(memory) != HEADER.size + 4 * count:
        raise _unusable("it has another format")
    values: NDArray[np.int32] = np.frombuffer(memory, np.int32, count, HEADER.size)
    others = "it was made from other weights, in other memory, or for another kind of CPU"
    try:
        model = ServerModel(
            program, weights, threads=threads, prepared_values=values, memory_bytes=memory_bytes, check=check
        )
    except ValueError:  # a map's values end early
        raise _unusable(others) from None
    if key != _key(model, weights):
        raise _unusable(others)
    return model


def _key(model: ServerModel, weights: Mapping[str, Array]) -> bytes:
    params = model.plan.params
    parts = [content_hash(weights), model.program.content_hash, params.n, params.ring_bits, params.primes]
    parts += [str(model.check or ""), [prepared.is_held for prepared in model.prepared], rlwe.path()]
    return hashlib.sha256(json.dumps(parts).encode()).digest()


def _unusable(why: str) -> SphynxError:
    return SphynxError(f"the shared weights cannot be used: {why}", where="memfd", remedy="Start the server again.")
