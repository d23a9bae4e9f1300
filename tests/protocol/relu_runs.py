"""Runs ReLU layers of either backend between two parties: what came out, what was counted, what was heard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.protocol.parties import run_parties

from sphynx.core import Prg
from sphynx.program.backends import Backend
from sphynx.program.extensions import SOFTSPOKEN, Extensions
from sphynx.protocol.channel import Channel, Record
from sphynx.protocol.ots import (
    ClientOts,
    ServerOts,
    add_up_client,
    add_up_server,
    choose_client,
    choose_server,
    set_up_client,
    set_up_server,
)
from sphynx.protocol.relu import ReluLayer, relu_client, relu_server

Words = NDArray[np.uint64]


def connected_ots(made: Extensions = SOFTSPOKEN) -> tuple[ServerOts, ClientOts]:
    """Set up sessions in both directions."""
    return run_parties(
        lambda c: choose_server(c, add_up_server(c, set_up_server(c, Prg(), b"runs")), made),
        lambda c: choose_client(c, add_up_client(c, set_up_client(c, Prg(), b"runs")), made),
    )


SERVER_OTS, CLIENT_OTS = connected_ots()  # sessions outlive bundles, so all runs share one set-up


@dataclass
class Party:
    """The traffic at one party's end of the channel. Messages are (phase, bytes)."""

    record: Record = field(default_factory=Record)
    received: list[tuple[str, bytes]] = field(default_factory=list)
    sent: list[tuple[str, bytes]] = field(default_factory=list)
    order: str = ""  # s for a message that was sent, r for one received

    def listen(self, channel: Channel, phase: str) -> None:
        """From here on, what passes the channel is kept as of this phase."""
        plain = Channel

        def send(*parts: Any) -> None:
            self.sent.append((phase, b"".join(memoryview(part).cast("B") for part in parts)))
            self.order += "s"
            plain.send(channel, *parts)

        def receive(size: int, **timeout: Any) -> bytearray:
            message = plain.receive(channel, size, **timeout)
            self.order += "r"
            self.received.append((phase, bytes(message)))
            return message

        channel.send, channel.receive = send, receive


@dataclass
class Run:
    results: list[list[int]]  # reconstructed, in [0, 2^k)
    server: Party
    client: Party


def run_layers(
    backend: Backend,
    layers: Sequence[ReluLayer],
    xs: Sequence[Words],
    *,
    shares: Sequence[Words] | None = None,
    new_masks: Sequence[Words] | None = None,
) -> Run:
    """Prepares all layers at once, then runs one after the other. The client's shares and masks: random by default."""
    rng = np.random.default_rng(0)

    def random() -> list[Words]:
        return [rng.integers(0, 2**64, layer.shape.count, np.uint64) & layer.shape.ring_mask for layer in layers]

    shares, new_masks = shares or random(), new_masks or random()
    served, asked = Party(), Party()

    def server(channel: Channel) -> list[Words]:
        role = relu_server(backend)
        served.listen(channel, "offline")
        materials = role.offline(channel, SERVER_OTS, layers)
        served.listen(channel, "online")
        results = []
        for layer, material, x, share in zip(layers, materials, xs, shares, strict=True):
            with channel.section("online", layer.name):
                results.append(role.online(channel, layer, material, (x - share) & layer.shape.ring_mask))
        served.record = channel.take_record()
        return results

    def client(channel: Channel) -> None:
        role = relu_client(backend)
        asked.listen(channel, "offline")
        materials = role.offline(channel, CLIENT_OTS, layers, shares, new_masks)
        asked.listen(channel, "online")
        for layer, material, share, new_mask in zip(layers, materials, shares, new_masks, strict=True):
            with channel.section("online", layer.name):
                role.online(channel, layer, material, share, new_mask)
        asked.record = channel.take_record()

    results, _ = run_parties(server, client)
    sums = [
        ((y + mask) & layer.shape.ring_mask).tolist() for y, mask, layer in zip(results, new_masks, layers, strict=True)
    ]
    return Run(sums, served, asked)


def layer_of(w: int, k: int, f: int, count: int, name: str = "cell 0/relu") -> ReluLayer:
    return ReluLayer.planned(name, w=w, k=k, f=f, count=count)


ONES = np.array([byte.bit_count() for byte in range(256)])


def assert_uniform(message: bytes) -> None:
    """Ones among the bits within 6 standard deviations; the chi-square of the bytes, 255 degrees of freedom."""
    counts = np.bincount(np.frombuffer(message, np.uint8), minlength=256)
    bits = 8 * len(message)
    assert abs(int(counts @ ONES) - bits / 2) < 6 * np.sqrt(bits) / 2
    if len(message) >= 5120:
        mean = len(message) / 256
        assert 130 < ((counts - mean) ** 2).sum() / mean < 420
