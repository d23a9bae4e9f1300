"""ReLU layers by bit-sliced GMW: few bytes, 4 messages a layer for 6 to 34 bits. Semi-honest.

Offline, the four messages of gmw_material.py for every batch, in the order of gmw_cuts.py: many are under way before
the first is waited for, so that both parties compute at the same time and rounds do not grow with layers. Online, the
messages of sphynx.core.gmw, by turns (turns.py).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from sphynx.core import gmw, silent
from sphynx.protocol.channel import Channel
from sphynx.protocol.gmw_cuts import Cut, Materials, Turn, as_words, cuts_of, turns
from sphynx.protocol.gmw_material import GmwOfflineClient, GmwOfflineServer, offline_messages, ot_count
from sphynx.protocol.ots import ClientOts, OtCount, ServerOts, reserve_client, reserve_server
from sphynx.protocol.relu_layer import Arrays, ReluLayer, Words
from sphynx.protocol.turns import follow, lead

PORTION_OTS = 8 * silent.SHAPE.usable  # whose seeds take 15 MB


class GmwReluServer:
    def offline(self, channel: Channel, ots: ServerOts, layers: Sequence[ReluLayer]) -> list[Arrays]:
        cuts, materials = cuts_of(layers), Materials(layers)
        begun: dict[int, GmwOfflineServer] = {}
        portions = _portions(cuts)
        for turn in turns(_request_bytes(cuts)):
            cut = cuts[turn.batch]
            if not turn.converts and turn.batch in portions:
                reserve_server(channel, ots, portions[turn.batch])
            with channel.section("offline", cut.name):
                if turn.converts:
                    batch = begun.pop(turn.batch)
                    corrections, material = batch.finish(channel.receive(batch.sizes.conversion))
                    channel.send(*corrections)
                    shares = _arrays(material.shares)
                    materials.put(cut, shares | {"leaf_masks": material.leaf_masks, "alpha": material.alpha})
                else:
                    batch = begun[turn.batch] = GmwOfflineServer(cut.shape, ots)
                    channel.send(*batch.answer(channel.receive(batch.sizes.request)))
        return materials.arrays

    def online(self, channel: Channel, layer: ReluLayer, material: Arrays, x: Words) -> Words:
        return lead(channel, layer.shape.gadget.server(x, **as_words(material)), layer.shape.count)


class GmwReluClient:
    def offline(
        self,
        channel: Channel,
        ots: ClientOts,
        layers: Sequence[ReluLayer],
        shares: Sequence[Words],
        new_masks: Sequence[Words],  # noqa: ARG002 - needed online only
    ) -> list[Arrays]:
        preparing = _Preparing(channel, ots, layers, shares)
        for turn in turns(_request_bytes(preparing.cuts)):
            preparing.take(turn)
        return preparing.finish()

    def online(self, channel: Channel, layer: ReluLayer, material: Arrays, x: Words, new_mask: Words) -> None:
        follow(channel, layer.shape.gadget.client(x, **as_words(material), new_mask=new_mask))


class _Preparing:
    """The client's batches under way: what it sent and the server has yet to answer, which it does in order."""

    def __init__(self, channel: Channel, ots: ClientOts, layers: Sequence[ReluLayer], shares: Sequence[Words]) -> None:
        self.cuts = cuts_of(layers)
        self._portions = _portions(self.cuts)
        self._channel, self._ots, self._shares, self._materials = channel, ots, shares, Materials(layers)
        self._begun: dict[int, GmwOfflineClient] = {}
        self._answers: dict[int, bytearray] = {}
        self._unanswered: deque[tuple[Turn, int]] = deque()  # with the bytes that were sent
        self._unanswered_bytes = 0

    def take(self, turn: Turn) -> None:
        cut = self.cuts[turn.batch]
        if turn.converts:
            while turn.batch not in self._answers:
                self._hear()
            batch = self._begun[turn.batch]
        else:
            if turn.batch in self._portions:
                self.finish()  # what the server sends before
                reserve_client(self._channel, self._ots, self._portions[turn.batch])
            own = self._shares[cut.number][cut.own]
            batch = self._begun[turn.batch] = GmwOfflineClient(cut.shape, self._ots, own)
        size = batch.sizes.conversion if turn.converts else batch.sizes.request
        while self._unanswered and self._unanswered_bytes + size > self._channel.ahead_bytes:
            self._hear()
        with self._channel.section("offline", cut.name):
            self._channel.send(*(batch.conversion(self._answers.pop(turn.batch)) if turn.converts else batch.request()))
        self._unanswered.append((turn, size))
        self._unanswered_bytes += size

    def finish(self) -> list[Arrays]:
        """Take all that the server has yet to send."""
        while self._unanswered:
            self._hear()
        return self._materials.arrays

    def _hear(self) -> None:
        """Take the server's next message."""
        turn, size = self._unanswered.popleft()
        self._unanswered_bytes -= size
        cut, batch = self.cuts[turn.batch], self._begun[turn.batch]
        with self._channel.section("offline", cut.name):
            if turn.converts:
                self._materials.put(cut, _arrays(batch.finish(self._channel.receive(batch.sizes.corrections))))
                del self._begun[turn.batch]
            else:
                self._answers[turn.batch] = self._channel.receive(batch.sizes.answer)


def _portions(cuts: Sequence[Cut]) -> dict[int, OtCount]:
    """Count the OTs to reserve before the requests of these batches: for those that follow, up to PORTION_OTS."""
    portions: dict[int, OtCount] = {}
    first = 0
    for number, cut in enumerate(cuts):
        own = ot_count(cut.shape)
        if number == 0 or portions[first].down + own.down > PORTION_OTS:
            first = number
        portions[first] = portions.get(first, OtCount()) + own
    return portions


def _request_bytes(cuts: Sequence[Cut]) -> list[int]:
    """Sizes by SoftSpoken, with which the window was measured, however OTs are extended."""
    return [offline_messages(cut.shape).request for cut in cuts]


def _arrays(material: gmw.Material) -> Arrays:
    return dict(vars(material))
