"""The end of an inference that reveals a label in place of scores: a garbled circuit an image, with either backend.

    offline  client -> server   OT extension, choices: the bits of its shares of the scores
             server -> client   late tweak and tables
    online   server -> client   the labels of its shares of the scores, and the colours of the outputs' zero labels

The circuit (core/circuit/library.h) adds the shares and finds the largest sum. The client reads the outputs' bits and
returns nothing: it learns the result and no score, the server learns nothing. Of a client that need not be trusted the
shares are those that it has committed to (verify/), and the last message follows the verdict on all that it evaluated.
"""

from __future__ import annotations

import atexit
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sphynx.core import garbling, ot, random_bytes
from sphynx.core.bits import bit_values, plane_words, slice_bits
from sphynx.errors import ConnectionLostError
from sphynx.program.cost.answer import count_ands, split_images
from sphynx.program.cost.ot_messages import BLOCK_BYTES, blocks_down
from sphynx.program.extensions import SOFTSPOKEN, Extensions
from sphynx.program.ir import Program
from sphynx.program.labels import NOT_SURE
from sphynx.protocol.channel import Channel
from sphynx.protocol.garbled_layer import SEED_BYTES, expand_labels, read_tables
from sphynx.protocol.ots import ClientOts, OtCount, ServerOts, reserve_client, reserve_server
from sphynx.protocol.relu_layer import Arrays
from sphynx.protocol.wires import Wires, Words

ANSWER = "answer circuit"  # the name of its section and of its material
_AND_BYTES, _WORD_BYTES = 2 * BLOCK_BYTES, 8


@dataclass(frozen=True)
class AnswerLayer:
    """One circuit for each image. The client's OTs have its shares' bits, of which the circuit takes the low ones."""

    classes: int
    bits: int
    margin: int
    images: int
    share_bits: int

    @classmethod
    def planned(cls, program: Program, images: int, share_bits: int = 0) -> AnswerLayer | None:
        """Plan it where the program reveals a label. `share_bits` is for shares that are committed to whole."""
        if not program.reveals_label:
            return None
        output = program.outputs[0]
        bits = program.ranges[output.source]
        return cls(program.shapes[output.source].size, bits, output.margin, images, share_bits or bits)

    @property
    def wires(self) -> Wires:
        return Wires(self.images * self.classes, (self.share_bits,))

    @property
    def circuit(self) -> garbling.Circuit:
        return _circuit(self.classes, self.bits, self.margin)

    @property
    def ands(self) -> int:
        """Counted without making the circuit, which takes a third of a second for a thousand classes."""
        return count_ands(self.classes, self.bits, self.margin)

    @property
    def runs(self) -> list[range]:
        """The images of each message with tables, and of each with labels."""
        return split_images(self.images, self.ands)

    @property
    def rows(self) -> int:
        """Wires of one party."""
        return self.classes * self.bits

    @property
    def label_bits(self) -> int:
        return (self.classes - 1).bit_length()

    @property
    def result_bits(self) -> int:
        return self.label_bits + (self.margin > 0)

    def request_bytes(self, made: Extensions) -> int:
        return BLOCK_BYTES * blocks_down(self.wires.ots, random_choices=False, made=made)

    @property
    def tables_bytes(self) -> list[int]:
        """Offline, by message; the first also carries the late tweak."""
        each = _AND_BYTES * self.ands
        return [ot.TWEAK_BYTES * (not number) + each * len(run) for number, run in enumerate(self.runs)]

    def labels_bytes(self, run: range) -> int:
        return BLOCK_BYTES * self.rows * len(run)

    def online_bytes(self, run: range) -> int:
        return self.labels_bytes(run) + _WORD_BYTES * self.result_bits * plane_words(len(run))

    def message_sizes(self) -> Iterator[tuple[str, int]]:
        """The largest messages, by name."""
        for size in (self.request_bytes(SOFTSPOKEN), *self.tables_bytes):
            yield ANSWER, size

    def arrange(self, blocks: Words) -> Words:
        """The client's wires as the circuit has them, (classes x bits, images, 2), of those of all OTs."""
        wires = self.wires
        parts = [wires.blocks(blocks, chunk)[: self.bits] for chunk in wires.chunks()]
        by_bit = np.concatenate(parts, axis=1).reshape(self.bits, self.images, self.classes, 2)
        return np.ascontiguousarray(by_bit.transpose(2, 0, 1, 3)).reshape(self.rows, self.images, 2)

    def planes(self, x: Words, run: range) -> Words:
        """The bits of the server's shares of these images' scores, as planes in the order of its wires."""
        scores = x.reshape(self.images, self.classes)[run.start : run.stop]
        return np.concatenate([slice_bits(np.ascontiguousarray(column), self.bits) for column in scores.T])


@lru_cache(maxsize=8)
def _circuit(classes: int, bits: int, margin: int) -> garbling.Circuit:
    return garbling.label_circuit(classes, bits, margin)


atexit.register(_circuit.cache_clear)  # native objects that outlive the interpreter are reported as leaks


def take_choices(channel: Channel, ots: ServerOts, layer: AnswerLayer) -> ot.FixedLabels:
    """Fix the client's labels, before all other circuits: so their requests need not wait for this one's tables."""
    reserve_server(channel, ots, OtCount(down=layer.wires.ots))
    with channel.section("offline", ANSWER):
        request = np.frombuffer(channel.receive(layer.request_bytes(ots.made)), np.uint64).reshape(-1, 2)
        return ots.down.correlated(request, layer.wires.ots, random_choices=False)


def send_choices(channel: Channel, ots: ClientOts, layer: AnswerLayer, share: Words) -> Words:
    """Give the labels of the bits of the client's share, (OTs, 2)."""
    reserve_client(channel, ots, OtCount(down=layer.wires.ots))
    with channel.section("offline", ANSWER):
        request, labels = ots.down.correlated(layer.wires.choices([share.reshape(-1)]), layer.wires.ots)
        channel.send(request.data)
    return labels


def garble_answer(channel: Channel, ots: ServerOts, layer: AnswerLayer, labels: ot.FixedLabels) -> Arrays:
    """Material: `seed` of the own wires' labels, `delta`, `colours 0`, `colours 1`, ... of the outputs' zero labels."""
    late_tweak, seed = labels.late_tweak(), random_bytes(ots.prg, SEED_BYTES)
    theirs = layer.arrange(labels.zeros)
    material: Arrays = {"seed": np.frombuffer(seed, np.uint8), "delta": ots.delta}
    with channel.section("offline", ANSWER):
        for number, run in enumerate(layer.runs):
            zeros = np.empty((2 * layer.rows, len(run), 2), np.uint64)
            expand_labels(seed, layer.rows * run.start, zeros[: layer.rows])
            zeros[layer.rows :] = theirs[:, run.start : run.stop]
            made = garbling.garble(layer.circuit, late_tweak, ots.delta, zeros, first_instance=run.start)
            channel.send(late_tweak if not number else b"", made.tables.data)
            material[f"colours {number}"] = made.colours
    return material


def receive_answer_tables(channel: Channel, layer: AnswerLayer, labels: Words) -> Arrays:
    """Material: `labels` of the own wires, `late_tweak`, `tables 0`, `tables 1`, ..."""
    with channel.section("offline", ANSWER):
        return {"labels": layer.arrange(labels), **read_tables(channel, layer.tables_bytes)}


def reveal(channel: Channel, layer: AnswerLayer, material: Arrays, x: Words) -> None:
    """Online, the server: let the client evaluate, and read what comes out."""
    seed = material["seed"].tobytes()
    for number, run in enumerate(layer.runs):
        zeros = np.empty((layer.rows, len(run), 2), np.uint64)
        expand_labels(seed, layer.rows * run.start, zeros)
        labels = garbling.encode(material["delta"], zeros, layer.planes(x, run))
        channel.send(labels.data, material[f"colours {number}"].data)


def learn(channel: Channel, layer: AnswerLayer, material: Arrays) -> NDArray[np.int64]:
    """Online, the client: the label of each image, or NOT_SURE."""
    late_tweak = material["late_tweak"].tobytes()
    found = np.empty((layer.result_bits, layer.images), np.int64)
    for number, run in enumerate(layer.runs):
        message = channel.receive(layer.online_bytes(run))
        labels = np.empty((2 * layer.rows, len(run), 2), np.uint64)
        sent = layer.labels_bytes(run)
        labels[: layer.rows] = np.frombuffer(message, np.uint64, sent // _WORD_BYTES).reshape(layer.rows, len(run), 2)
        labels[layer.rows :] = material["labels"][:, run.start : run.stop]
        evaluated = garbling.evaluate(
            layer.circuit, late_tweak, labels, material[f"tables {number}"], first_instance=run.start
        )
        colours = np.frombuffer(message, np.uint64, offset=sent).reshape(evaluated.colours.shape)
        found[:, run.start : run.stop] = bit_values(evaluated.colours ^ colours)[:, : len(run)]
    labels = (found[: layer.label_bits] << np.arange(layer.label_bits)[:, None]).sum(axis=0)
    if (labels >= layer.classes).any():
        raise ConnectionLostError(
            "the server's answer is none of the classes", where=ANSWER, remedy="Contact the server's operator."
        )
    return np.where(found[layer.label_bits], labels, NOT_SURE) if layer.margin else labels
