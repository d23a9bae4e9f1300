"""ReLU layers by garbled circuits (DELPHI's step, eprint 2020/050, over Z_2^k): one round trip a layer. Semi-honest.

The server garbles, the client evaluates (max(x_s + x_c, 0) >> f) - r' (garbled_layer.py).

    offline  client -> server   OT extension, choices: the bits of x_c and r'
             server -> client   late tweak and tables, chunk by chunk
    online   server -> client   the labels of x_s, chunk by chunk
             client -> server   the colours of the output labels
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from sphynx.core.gmw import ReluShape
from sphynx.program.cost.ot_messages import BLOCK_BYTES, blocks_down
from sphynx.program.extensions import SOFTSPOKEN, Extensions
from sphynx.protocol.ahead import Ask, answers_ahead
from sphynx.protocol.channel import Channel
from sphynx.protocol.garbled_layer import GarbledLayer, evaluate, garble, receive_tables, serve
from sphynx.protocol.ots import ClientOts, OtCount, ServerOts, reserve_client, reserve_server
from sphynx.protocol.relu_layer import Arrays, ReluLayer, Words
from sphynx.protocol.wires import Wires


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


def _garbled(shape: ReluShape) -> GarbledLayer:
    return GarbledLayer("relu", shape.w, shape.k, shape.f, shape.count)


def _wires(shape: ReluShape) -> Wires:
    return Wires(shape.count, (shape.w, shape.k))


@lru_cache
def messages(shape: ReluShape, made: Extensions = SOFTSPOKEN) -> Messages:
    layer = _garbled(shape)
    blocks = blocks_down(_wires(shape).ots, random_choices=False, made=made)
    return Messages(BLOCK_BYTES * blocks, layer.tables_bytes, layer.labels_bytes, layer.colours_bytes)


def ot_count(shape: ReluShape) -> OtCount:
    """Count the OTs of a layer."""
    return OtCount(down=_wires(shape).ots)


def _all_ots(layers: Sequence[ReluLayer]) -> OtCount:
    return sum((ot_count(layer.shape) for layer in layers), OtCount())


class GcReluServer:
    """Material: that of `garble`."""

    def offline(self, channel: Channel, ots: ServerOts, layers: Sequence[ReluLayer]) -> list[Arrays]:
        materials = []
        reserve_server(channel, ots, _all_ots(layers))
        for layer in layers:
            with channel.section("offline", layer.name):
                materials.append(self._garble(channel, ots, layer.shape))
        return materials

    def _garble(self, channel: Channel, ots: ServerOts, shape: ReluShape) -> Arrays:
        wires = _wires(shape)
        request = np.frombuffer(channel.receive(messages(shape, ots.made).request), np.uint64).reshape(-1, 2)
        labels = ots.down.correlated(request, wires.ots, random_choices=False)
        return garble(channel, ots, _garbled(shape), labels, wires.blocks)

    def online(self, channel: Channel, layer: ReluLayer, material: Arrays, x: Words) -> Words:
        return serve(channel, _garbled(layer.shape), material, x)


class GcReluClient:
    """Material: `labels` of the own wires, and that of `receive_tables`."""

    def offline(
        self,
        channel: Channel,
        ots: ClientOts,
        layers: Sequence[ReluLayer],
        shares: Sequence[Words],
        new_masks: Sequence[Words],
    ) -> list[Arrays]:
        own_labels = []
        reserve_client(channel, ots, _all_ots(layers))

        def send(layer: ReluLayer, x: Words, new_mask: Words) -> None:
            with channel.section("offline", layer.name):
                wires = _wires(layer.shape)
                request, labels = ots.down.correlated(wires.choices([x, new_mask]), wires.ots)
                channel.send(request.data)
                own_labels.append(labels)

        def receive(layer: ReluLayer) -> Arrays:
            with channel.section("offline", layer.name):
                return receive_tables(channel, _garbled(layer.shape))

        asks = [
            Ask(messages(layer.shape, ots.made).request, partial(send, layer, x, new_mask), partial(receive, layer))
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
        labels_of = partial(_wires(layer.shape).blocks, material["labels"])
        evaluate(channel, _garbled(layer.shape), material, labels_of)
