"""ReLU layers on additive shares: what the two backends, garbled circuits and GMW, offer alike.

The parties enter a layer with shares of x, the client's known before the inference, and leave it with shares of
y = max(x, 0) >> f mod 2^k: the client's is a mask r' of its choice, the server's y - r'. Offline makes the material of
all layers at once, so that rounds do not grow with them; a material serves one inference, and online spends it.
Offline opens its own sections of the channel, online runs inside the caller's. docs/relu.md has the arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from sphynx.core.gmw import ReluShape
from sphynx.program.backends import Backend
from sphynx.protocol.channel import Channel
from sphynx.protocol.ots import ClientOts, ServerOts
from sphynx.protocol.relu_gc import GcReluClient, GcReluServer
from sphynx.protocol.relu_gmw import GmwReluClient, GmwReluServer
from sphynx.protocol.relu_layer import Arrays, ReluLayer, Words

__all__ = ["Arrays", "ReluClient", "ReluLayer", "ReluServer", "ReluShape", "relu_client", "relu_server"]


class ReluServer(Protocol):
    def offline(self, channel: Channel, ots: ServerOts, layers: Sequence[ReluLayer]) -> list[Arrays]:
        """The server's material of each layer."""

    def online(self, channel: Channel, layer: ReluLayer, material: Arrays, x: Words) -> Words:
        """The server's shares y - r', from its shares x; both of shape (count,)."""


class ReluClient(Protocol):
    def offline(
        self,
        channel: Channel,
        ots: ClientOts,
        layers: Sequence[ReluLayer],
        shares: Sequence[Words],
        new_masks: Sequence[Words],
    ) -> list[Arrays]:
        """The client's material of each layer, for its shares of x and the masks r' that it will hold."""

    def online(self, channel: Channel, layer: ReluLayer, material: Arrays, x: Words, new_mask: Words) -> None:
        """Run the online phase with the x and r' of `offline`; the client's share of the result is r'."""


def relu_server(backend: Backend) -> ReluServer:
    return GcReluServer() if backend == "gc" else GmwReluServer()


def relu_client(backend: Backend) -> ReluClient:
    return GcReluClient() if backend == "gc" else GmwReluClient()
