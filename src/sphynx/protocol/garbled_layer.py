"""A layer of equal garbled circuits (half-gates, eprint 2014/756) over additive shares, chunk by chunk.

    offline  server -> client   late tweak and tables
    online   server -> client   the labels of x_s
             client -> server   the colours of the output labels

The client's labels are those of OTs whose offset is the garbling offset: q_j is the zero label of its wire j, t_j = q_j
xor c_j delta the label of its bit, so no label of its own travels. It chose the seeds behind them: the tweak of the
layer's hashes is drawn when its OT message is here (core/crypto/hash.h). The labels of the server's wires come from a
seed, all that it keeps of them. The client never gets the colours of zero labels: it cannot decode what it returns.

Garbling, sending and receiving (online: encoding, sending, evaluating) overlap.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from sphynx.core import _native, garbling, ot, random_bytes
from sphynx.core.bits import bit_values, plane_words, slice_bits, unslice_bits
from sphynx.protocol.channel import Channel
from sphynx.protocol.ots import ServerOts
from sphynx.protocol.relu_layer import Arrays
from sphynx.protocol.wires import CHUNK, Chunk, Wires, Words

_KEY_BYTES = 16
SEED_BYTES = _KEY_BYTES + 8  # a key, and which of its streams: no two layers' keys encrypt the same
_BLOCK_BYTES, _WORD_BYTES = 16, 8

LabelsOf = Callable[[Chunk], Words]  # the client's wires of a chunk, (w + k, instances, 2)
WiresOf = Callable[[Words, Chunk], Words]  # the same among all labels of an extension
Watch = Callable[[Words], None]  # sees the halves of a chunk's output labels, in order


@dataclass(frozen=True)
class GarbledLayer:
    """`count` circuits on x_s and x_c of w bits and r' of k: relu gives (max(x, 0) >> f) - r', floor (x >> f) - r'."""

    kind: Literal["relu", "floor"]
    w: int
    k: int
    f: int
    count: int

    @property
    def circuit(self) -> garbling.Circuit:
        return _circuit(self.kind, self.w, self.k, self.f)

    def chunks(self) -> list[Chunk]:
        return list(Wires(self.count, ()).chunks())

    @property
    def tables_bytes(self) -> tuple[int, ...]:
        """Offline, by chunk; the first also carries the late tweak."""
        and_bytes = 2 * _BLOCK_BYTES * self.circuit.and_count
        return tuple(ot.TWEAK_BYTES * (not c.number) + and_bytes * c.count for c in self.chunks())

    @property
    def labels_bytes(self) -> tuple[int, ...]:
        """Online, by chunk."""
        return tuple(_BLOCK_BYTES * self.w * c.count for c in self.chunks())

    @property
    def colours_bytes(self) -> int:
        """Online: planes of whole words."""
        return _WORD_BYTES * self.k * plane_words(self.count)

    def scratch(self, wires: int) -> Words:
        """Room for the labels of one chunk, used again for the next: fresh memory costs more than the copy into it."""
        return np.empty((wires, min(CHUNK, self.count), 2), np.uint64)


@lru_cache
def _circuit(kind: str, w: int, k: int, f: int) -> garbling.Circuit:
    return garbling.relu_circuit(w, k, f) if kind == "relu" else garbling.floor_circuit(w, k, f)


atexit.register(_circuit.cache_clear)  # native objects that outlive the interpreter are reported as leaks


def garble(
    channel: Channel,
    ots: ServerOts,
    layer: GarbledLayer,
    labels: ot.FixedLabels,
    wires_of: WiresOf,
    *,
    halves: bool = False,
) -> Arrays:
    """Material: `seed` of the own wires' labels, `delta`, `colours` of the outputs' zero labels, perhaps `halves`."""
    late_tweak = labels.late_tweak()
    seed = random_bytes(ots.prg, SEED_BYTES)
    colours = np.empty((layer.k, plane_words(layer.count)), np.uint64)
    kept = np.empty((layer.k, layer.count if halves else 0), np.uint64)
    scratch = layer.scratch(2 * layer.w + layer.k)
    for chunk in layer.chunks():
        zeros = _in(scratch, chunk)
        expand_labels(seed, layer.w * chunk.start, zeros[: layer.w])
        zeros[layer.w :] = wires_of(labels.zeros, chunk)
        made = garbling.garble(
            layer.circuit, late_tweak, ots.delta, zeros, first_instance=chunk.start, with_halves=halves
        )
        channel.send(late_tweak if not chunk.number else b"", made.tables.data)
        colours[:, chunk.words] = made.colours
        if made.halves is not None:
            kept[:, chunk.own] = made.halves
    material: Arrays = {"seed": np.frombuffer(seed, np.uint8), "delta": ots.delta, "colours": colours}
    return {**material, "halves": kept} if halves else material


def receive_tables(channel: Channel, layer: GarbledLayer) -> Arrays:
    """The client's material of a layer."""
    return read_tables(channel, layer.tables_bytes)


def read_tables(channel: Channel, sizes: Sequence[int]) -> Arrays:
    """The client's material: `late_tweak`, `tables 0`, `tables 1`, ..., as they come from the wire, without a copy."""
    arrays: Arrays = {}
    for number, size in enumerate(sizes):
        message = channel.receive(size)
        if not number:
            arrays["late_tweak"] = np.frombuffer(bytes(message[: ot.TWEAK_BYTES]), np.uint8)
        tables = np.frombuffer(message, np.uint64, offset=0 if number else ot.TWEAK_BYTES)
        arrays[f"tables {number}"] = tables.reshape(-1, 2)
    return arrays


def serve(channel: Channel, layer: GarbledLayer, material: Arrays, x: Words, watch: Watch | None = None) -> Words:
    """Online, the server's share of what comes out, from its share of x. `watch` sees the halves of honest labels."""
    seed, scratch = material["seed"].tobytes(), layer.scratch(layer.w)
    for chunk in layer.chunks():
        zeros = _in(scratch, chunk)
        expand_labels(seed, layer.w * chunk.start, zeros)
        channel.send(garbling.encode(material["delta"], zeros, slice_bits(x[chunk.own], layer.w)).data)
    colours = np.frombuffer(channel.receive(layer.colours_bytes), np.uint64).reshape(layer.k, -1)
    values = colours ^ material["colours"]
    if watch is not None:
        for chunk in layer.chunks():
            watch(_honest_halves(material, values, chunk))
    return unslice_bits(values, layer.count)


def _honest_halves(material: Arrays, values: Words, chunk: Chunk) -> Words:
    offset = material["delta"][0, 1]
    bits = bit_values(values[:, chunk.words])[:, : chunk.count]
    honest: Words = material["halves"][:, chunk.own] ^ (bits * offset)
    return honest


def evaluate(
    channel: Channel, layer: GarbledLayer, material: Arrays, labels_of: LabelsOf, watch: Watch | None = None
) -> None:
    """Online, the client. `watch` sees the halves of the labels that came out."""
    late_tweak = material["late_tweak"].tobytes()
    colours = np.empty((layer.k, plane_words(layer.count)), np.uint64)
    scratch = layer.scratch(2 * layer.w + layer.k)
    for chunk, size in zip(layer.chunks(), layer.labels_bytes, strict=True):
        labels = _in(scratch, chunk)
        labels[layer.w :] = labels_of(chunk)
        labels[: layer.w] = np.frombuffer(channel.receive(size), np.uint64).reshape(layer.w, -1, 2)
        tables = material[f"tables {chunk.number}"]
        evaluated = garbling.evaluate(
            layer.circuit, late_tweak, labels, tables, first_instance=chunk.start, with_halves=watch is not None
        )
        colours[:, chunk.words] = evaluated.colours
        if watch is not None and evaluated.halves is not None:
            watch(evaluated.halves)
    channel.send(colours.data)


def _in(scratch: Words, chunk: Chunk) -> Words:
    """(wires, instances, 2), contiguous, in scratch memory."""
    wires = scratch.shape[0]
    return scratch.reshape(-1)[: 2 * wires * chunk.count].reshape(wires, chunk.count, 2)


def expand_labels(seed: bytes, first: int, out: Words) -> None:
    """The zero labels of the server's wires, from the `first` of all on."""
    key, stream = seed[:_KEY_BYTES], int.from_bytes(seed[_KEY_BYTES:], "little")
    _native.expand_seed(key, stream, first, out, threads=0)
