"""ReLU layers by bit-sliced GMW: few bytes, 4 messages a layer for 6 to 34 bits. Semi-honest.

Offline, the four messages of gmw_material.py; each is sent for all layers before the next is waited for, so that
both parties compute at the same time and rounds do not grow with layers. Online, the messages of sphynx.core.gmw, by
turns (turns.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from sphynx.core import gmw
from sphynx.protocol.ahead import Ask, answers_ahead
from sphynx.protocol.channel import Channel
from sphynx.protocol.gmw_material import GmwOfflineClient, GmwOfflineServer
from sphynx.protocol.ots import ClientOts, ServerOts
from sphynx.protocol.relu_layer import Arrays, ReluLayer, Words
from sphynx.protocol.turns import follow, lead


class GmwReluServer:
    def offline(self, channel: Channel, ots: ServerOts, layers: Sequence[ReluLayer]) -> list[Arrays]:
        batches = [(layer.name, GmwOfflineServer(layer.shape, ots.down, ots.up)) for layer in layers]
        for name, batch in batches:
            with channel.section("offline", name):
                channel.send(*batch.answer(channel.receive(batch.sizes.request)))
        materials = []
        for name, batch in batches:
            with channel.section("offline", name):
                corrections, material = batch.finish(channel.receive(batch.sizes.conversion))
                channel.send(*corrections)
            materials.append(_arrays(material.shares) | {"leaf_masks": material.leaf_masks, "alpha": material.alpha})
        return materials

    def online(self, channel: Channel, layer: ReluLayer, material: Arrays, x: Words) -> Words:
        return lead(channel, layer.shape.gadget.server(x, **material), layer.shape.count)


class GmwReluClient:
    def offline(
        self,
        channel: Channel,
        ots: ClientOts,
        layers: Sequence[ReluLayer],
        shares: Sequence[Words],
        new_masks: Sequence[Words],  # noqa: ARG002 - needed online only
    ) -> list[Arrays]:
        batches = [
            (layer.name, GmwOfflineClient(layer.shape, ots.down, ots.up, x))
            for layer, x in zip(layers, shares, strict=True)
        ]

        def request(name: str, batch: GmwOfflineClient) -> None:
            with channel.section("offline", name):
                channel.send(*batch.request())

        def answer(name: str, batch: GmwOfflineClient) -> bytearray:
            with channel.section("offline", name):
                return channel.receive(batch.sizes.answer)

        def convert(name: str, batch: GmwOfflineClient) -> None:
            answered = next(answers)
            with channel.section("offline", name):
                channel.send(*batch.conversion(answered))

        def finish(name: str, batch: GmwOfflineClient) -> Arrays:
            with channel.section("offline", name):
                return _arrays(batch.finish(channel.receive(batch.sizes.corrections)))

        requests = [Ask(b.sizes.request, partial(request, name, b), partial(answer, name, b)) for name, b in batches]
        answers = answers_ahead(channel.ahead_bytes, requests)
        if sum(batch.sizes.conversion for _, batch in batches) > channel.ahead_bytes:
            answers = iter(list(answers))  # corrections may have to be read early, and the answers come before them
        conversions = [
            Ask(b.sizes.conversion, partial(convert, name, b), partial(finish, name, b)) for name, b in batches
        ]
        return list(answers_ahead(channel.ahead_bytes, conversions))

    def online(self, channel: Channel, layer: ReluLayer, material: Arrays, x: Words, new_mask: Words) -> None:
        follow(channel, layer.shape.gadget.client(x, **material, new_mask=new_mask))


def _arrays(material: gmw.Material) -> Arrays:
    return dict(vars(material))
