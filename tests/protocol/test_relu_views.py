"""Each party of a ReLU layer receives uniform bits whatever the inputs are, and nothing of a wrong size.

Thresholds are fixed and generous: under the hypothesis that is tested, each fails by chance less than once in 10^8.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.protocol.parties import run_parties
from tests.protocol.relu_runs import Run, assert_uniform, layer_of, run_layers

from sphynx.core import Prg
from sphynx.core.gmw import online_messages
from sphynx.errors import ConnectionLostError
from sphynx.program.backends import Backend
from sphynx.protocol.channel import Channel
from sphynx.protocol.ots import add_up_client, add_up_server, set_up_client, set_up_server
from sphynx.protocol.relu import relu_client, relu_server
from sphynx.protocol.transport import Buffer

W, K, F, COUNT = 20, 24, 5, 4096
LAYER = layer_of(W, K, F, COUNT)
EXTREMES = {  # x and the client's share of it
    "zeros": (0, 0),
    "ones": (2**K - 1, 2**K - 1),
    "largest": (2 ** (W - 1) - 1, 0),
    "least": (2**K - 2 ** (W - 1) + 1, 5),
}


def full(value: int) -> NDArray[np.uint64]:
    return np.full(COUNT, value, np.uint64)


def run_extreme(backend: Backend, x: int, share: int) -> Run:
    """Every x, share and new mask the same: whatever is not masked shows at once."""
    return run_layers(backend, [LAYER], [full(x)], shares=[full(share)], new_masks=[full(0)])


@pytest.mark.parametrize("extreme", EXTREMES)
@pytest.mark.parametrize("backend", ["gmw", "gc"])
def test_what_is_received_is_uniform(backend: Backend, extreme: str) -> None:
    run = run_extreme(backend, *EXTREMES[extreme])
    for party in (run.server, run.client):
        assert party.received
        for _, message in party.received:
            assert_uniform(message)


def test_opened_values_are_uniform() -> None:
    """The xor of what both send for a level, and for the result bits: values under masks that neither knows alone."""
    run = run_extreme("gmw", 0, 0)
    sizes = online_messages(LAYER.shape)
    from_client = b"".join(message for phase, message in run.server.received if phase == "online")
    first, *others = (message for phase, message in run.client.received if phase == "online")
    from_server = b"".join([first[: sizes.openings[0]], *others])  # beside the first opening: leaves and z
    at = 0
    for size in sizes.openings:
        opened = np.frombuffer(from_server, np.uint8, size, at) ^ np.frombuffer(from_client, np.uint8, size, at)
        assert_uniform(opened.tobytes())
        at += size
    assert at == len(from_server) == len(from_client) - sizes.ring_elements


@pytest.mark.parametrize("backend", ["gmw", "gc"])
def test_two_runs_on_equal_inputs_share_nothing(backend: Backend) -> None:
    first, second = run_extreme(backend, 0, 0), run_extreme(backend, 0, 0)
    for a, b in zip(first.client.received, second.client.received, strict=True):
        assert_uniform((np.frombuffer(a[1], np.uint8) ^ np.frombuffer(b[1], np.uint8)).tobytes())


def test_colours_of_constant_outputs_are_unbiased_on_every_wire() -> None:
    """The gc client learns nothing from what it computes and returns: it holds no decoding information."""
    run = run_extreme("gc", 12345, 77)
    planes = np.frombuffer(run.client.sent[-1][1], np.uint8).reshape(K, -1)
    ones = np.unpackbits(planes, axis=1).sum(axis=1).astype(np.int64)
    assert (abs(ones - COUNT / 2) < 6.5 * np.sqrt(COUNT) / 2).all()


def shortened(channel: Channel, honest_messages: int) -> None:
    """From its honest messages on, this end sends a byte less than is due."""
    sent = [0]

    def send(*parts: Buffer) -> None:
        message = b"".join(memoryview(part).cast("B") for part in parts)
        Channel.send(channel, message if sent[0] < honest_messages else message[:-1])
        sent[0] += 1

    channel.send = send


@pytest.mark.parametrize(
    ("backend", "liar", "honest_messages"),
    [("gmw", liar, honest) for liar in ("server", "client") for honest in range(4)]
    + [("gc", liar, honest) for liar in ("server", "client") for honest in range(2)],
)
def test_a_message_of_a_wrong_size_ends_the_connection(backend: Backend, liar: str, honest_messages: int) -> None:
    layer, zeros = layer_of(8, 10, 2, 130), np.zeros(130, np.uint64)
    refusals: list[str] = []

    def server(channel: Channel) -> None:
        ots = add_up_server(
            channel, set_up_server(channel, Prg(), b"views")
        )  # sessions of its own: they end out of step
        if liar == "server":
            shortened(channel, honest_messages)
        try:
            (material,) = relu_server(backend).offline(channel, ots, [layer])
            relu_server(backend).online(channel, layer, material, zeros)
        except ConnectionLostError as error:
            refusals.append(str(error))

    def client(channel: Channel) -> None:
        ots = add_up_client(channel, set_up_client(channel, Prg(), b"views"))
        if liar == "client":
            shortened(channel, honest_messages)
        try:
            (material,) = relu_client(backend).offline(channel, ots, [layer], [zeros], [zeros])
            relu_client(backend).online(channel, layer, material, zeros, zeros)
        except ConnectionLostError as error:
            refusals.append(str(error))

    run_parties(server, client)
    assert sum("bytes where" in refusal for refusal in refusals) == 1
