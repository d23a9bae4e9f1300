"""ReLU layers by garbled circuits (DELPHI's step, eprint 2020/050, over Z_2^k): one round trip a layer. Semi-honest.

The server garbles, the client evaluates (max(x_s + x_c, 0) >> f) - r' (half-gates, eprint 2014/756).

    offline  client -> server   OT extension, choices: the bits of x_c and r'
             server -> client   late tweak and tables, chunk by chunk
    online   server -> client   the labels of x_s, chunk by chunk
             client -> server   the colours of the output labels

The OT's offset is the garbling offset: q_j is the zero label of the client's wire j, t_j = q_j xor c_j delta the label
of its bit, so no label travels offline. The client chose the seeds behind them: the tweak of the layer's hashes is
drawn when its OT message is here (core/crypto/hash.h). The labels of the server's wires come from a seed, all that it
keeps of them. The client never gets the colours of zero labels: it cannot decode what it returns.

A layer is cut into chunks of CHUNK_RELUS, in which labels are (wires, instances): garbling, sending and receiving
(online: encoding, sending, evaluating) overlap, and a chunk's labels stay in the cache.
"""

from __future__ import annotations

import atexit
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from sphynx.core import _native, garbling, ot, random_bytes
from sphynx.core.bits import bit_values, pack_ring, plane_words, slice_bits, unslice_bits
from sphynx.core.gmw import ReluShape
from sphynx.protocol.ahead import Ask, answers_ahead
from sphynx.protocol.channel import Channel
from sphynx.protocol.ots import ClientOts, ServerOts, blocks_down
from sphynx.protocol.relu_layer import Arrays, ReluLayer, Words

CHUNK_RELUS = 2048  # a multiple of 64
_KEY_BYTES = 16
SEED_BYTES = _KEY_BYTES + 8  # a key, and which of its streams: no two layers' keys encrypt the same
_BLOCK_BYTES, _WORD_BYTES = 16, 8


@dataclass(frozen=True)
class _Chunk:
    """Instances start .. start + count of a layer of shape `shape`."""

    number: int
    start: int
    count: int
    shape: ReluShape

    @property
    def own(self) -> slice:
        return slice(self.start, self.start + self.count)

    @property
    def words(self) -> slice:
        """The chunk's words of a plane over the layer."""
        return slice(self.start // 64, plane_words(self.start + self.count))

    def labels(self, scratch: Words) -> Words:
        """(wires, instances, 2), contiguous, in the scratch memory of _scratch."""
        wires = scratch.shape[0]
        return scratch.reshape(-1)[: 2 * wires * self.count].reshape(wires, self.count, 2)

    @property
    def client_labels(self) -> slice:
        """The chunk's part of the layer's OTs: chunk after chunk, in each (w + k wires, instances)."""
        wires = self.shape.w + self.shape.k
        return slice(wires * self.start, wires * (self.start + self.count))


def _scratch(shape: ReluShape, wires: int) -> Words:
    """Room for the labels of one chunk, used again for the next: fresh memory costs more than the copy into it."""
    return np.empty((wires, min(CHUNK_RELUS, shape.count), 2), np.uint64)


def _chunks(shape: ReluShape) -> Iterator[_Chunk]:
    for number, start in enumerate(range(0, shape.count, CHUNK_RELUS)):
        yield _Chunk(number, start, min(CHUNK_RELUS, shape.count - start), shape)


@dataclass(frozen=True)
class Messages:
    """Payload bytes of a layer's messages."""

    request: int  # offline, client -> server
    tables: tuple[int, ...]  # offline, server -> client; the first also carries the late tweak
    labels: tuple[int, ...]  # online, server -> client
    colours: int  # online, client -> server: planes of whole words

    @property
    def offline_bytes(self) -> int:
        return self.request + sum(self.tables)

    @property
    def online_bytes(self) -> int:
        return sum(self.labels) + self.colours


@lru_cache
def _circuit(shape: ReluShape) -> garbling.Circuit:
    return garbling.relu_circuit(shape.w, shape.k, shape.f)


atexit.register(_circuit.cache_clear)  # native objects that outlive the interpreter are reported as leaks


@lru_cache
def messages(shape: ReluShape) -> Messages:
    and_bytes = 2 * _BLOCK_BYTES * _circuit(shape).and_count
    ots = (shape.w + shape.k) * shape.count
    return Messages(
        request=_BLOCK_BYTES * blocks_down(ots, random_choices=False),
        tables=tuple(ot.TWEAK_BYTES * (not c.number) + and_bytes * c.count for c in _chunks(shape)),
        labels=tuple(_BLOCK_BYTES * shape.w * c.count for c in _chunks(shape)),
        colours=_WORD_BYTES * shape.k * shape.words,
    )


class GcReluServer:
    """Material: `seed` of the own wires' labels, `delta`, `colours` of the outputs' zero labels."""

    def offline(self, channel: Channel, ots: ServerOts, layers: Sequence[ReluLayer]) -> list[Arrays]:
        materials = []
        for layer in layers:
            with channel.section("offline", layer.name):
                materials.append(self._garble(channel, ots, layer.shape))
        return materials

    def _garble(self, channel: Channel, ots: ServerOts, shape: ReluShape) -> Arrays:
        circuit = _circuit(shape)
        request = np.frombuffer(channel.receive(messages(shape).request), np.uint64).reshape(-1, 2)
        client_zeros = ots.down.correlated(request, (shape.w + shape.k) * shape.count, random_choices=False)
        late_tweak, seed = ots.down.late_tweak(), random_bytes(ots.prg, SEED_BYTES)
        colours = np.empty((shape.k, shape.words), np.uint64)
        scratch = _scratch(shape, 2 * shape.w + shape.k)
        for chunk in _chunks(shape):
            zeros = chunk.labels(scratch)
            _expand_labels(seed, chunk, zeros[: shape.w])
            zeros[shape.w :] = client_zeros[chunk.client_labels].reshape(-1, chunk.count, 2)
            garbled = garbling.garble(circuit, late_tweak, ots.delta, zeros, first_instance=chunk.start)
            channel.send(late_tweak if not chunk.number else b"", garbled.tables.data)
            colours[:, chunk.words] = garbled.colours
        return {"seed": np.frombuffer(seed, np.uint8), "delta": ots.delta, "colours": colours}

    def online(self, channel: Channel, layer: ReluLayer, material: Arrays, x: Words) -> Words:
        shape, seed = layer.shape, material["seed"].tobytes()
        scratch = _scratch(shape, shape.w)
        for chunk in _chunks(shape):
            zeros = chunk.labels(scratch)
            _expand_labels(seed, chunk, zeros)
            labels = garbling.encode(material["delta"], zeros, slice_bits(x[chunk.own], shape.w))
            channel.send(labels.data)
        colours = np.frombuffer(channel.receive(messages(shape).colours), np.uint64).reshape(shape.k, -1)
        return unslice_bits(colours ^ material["colours"], shape.count)


class GcReluClient:
    """Material: `late_tweak`, `labels` of the own wires, `tables 0`, `tables 1`, ... of the chunks."""

    def offline(
        self,
        channel: Channel,
        ots: ClientOts,
        layers: Sequence[ReluLayer],
        shares: Sequence[Words],
        new_masks: Sequence[Words],
    ) -> list[Arrays]:
        own_labels = []

        def send(layer: ReluLayer, x: Words, new_mask: Words) -> None:
            with channel.section("offline", layer.name):
                choices = _choices(layer.shape, x, new_mask)
                request, labels = ots.down.correlated(choices, (layer.shape.w + layer.shape.k) * layer.shape.count)
                channel.send(request.data)
                own_labels.append(labels)

        def receive(layer: ReluLayer) -> Arrays:
            with channel.section("offline", layer.name):
                return _receive_tables(channel, layer.shape)

        asks = [
            Ask(messages(layer.shape).request, partial(send, layer, x, new_mask), partial(receive, layer))
            for layer, x, new_mask in zip(layers, shares, new_masks, strict=True)
        ]
        tables = list(answers_ahead(channel.ahead_bytes, asks))
        return [{"labels": labels} | received for labels, received in zip(own_labels, tables, strict=True)]

    def online(
        self,
        channel: Channel,
        layer: ReluLayer,
        material: Arrays,
        x: Words,  # noqa: ARG002 - the labels hold it already
        new_mask: Words,  # noqa: ARG002 - as before
    ) -> None:
        shape, late_tweak = layer.shape, material["late_tweak"].tobytes()
        circuit = _circuit(shape)
        colours = np.empty((shape.k, shape.words), np.uint64)
        scratch = _scratch(shape, 2 * shape.w + shape.k)
        for chunk, size in zip(_chunks(shape), messages(shape).labels, strict=True):
            labels = chunk.labels(scratch)
            labels[shape.w :] = material["labels"][chunk.client_labels].reshape(-1, chunk.count, 2)
            labels[: shape.w] = np.frombuffer(channel.receive(size), np.uint64).reshape(shape.w, -1, 2)
            tables = material[f"tables {chunk.number}"]
            colours[:, chunk.words] = garbling.evaluate(circuit, late_tweak, labels, tables, first_instance=chunk.start)
        channel.send(colours.data)


def _expand_labels(seed: bytes, chunk: _Chunk, out: Words) -> None:
    """The zero labels of the server's wires, (w, instances)."""
    key, stream = seed[:_KEY_BYTES], int.from_bytes(seed[_KEY_BYTES:], "little")
    _native.expand_seed(key, stream, chunk.shape.w * chunk.start, out, threads=0)


def _choices(shape: ReluShape, x: Words, new_mask: Words) -> Words:
    """The bits of x and r' in the order of the OTs, packed."""
    packed = np.zeros(plane_words((shape.w + shape.k) * shape.count), np.uint64)
    for chunk in _chunks(shape):
        planes = np.concatenate([slice_bits(x[chunk.own], shape.w), slice_bits(new_mask[chunk.own], shape.k)])
        if chunk.count % 64:  # only the last chunk: rows follow each other without padding
            tail = pack_ring(bit_values(planes)[:, : chunk.count].flatten(), 1)
            packed.view(np.uint8)[_WORD_BYTES * (chunk.client_labels.start // 64) :][: tail.size] = tail
        else:
            packed[chunk.client_labels.start // 64 : chunk.client_labels.stop // 64] = planes.reshape(-1)
    return packed


def _receive_tables(channel: Channel, shape: ReluShape) -> Arrays:
    """Receive the tables as they come from the wire, without a copy."""
    arrays: Arrays = {}
    for number, size in enumerate(messages(shape).tables):
        message = channel.receive(size)
        if not number:
            arrays["late_tweak"] = np.frombuffer(bytes(message[: ot.TWEAK_BYTES]), np.uint8)
        tables = np.frombuffer(message, np.uint64, offset=0 if number else ot.TWEAK_BYTES)
        arrays[f"tables {number}"] = tables.reshape(-1, 2)
    return arrays
