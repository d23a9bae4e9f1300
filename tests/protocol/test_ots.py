"""The set-up of a connection's OT sessions: both directions work, each message has its documented size."""

from __future__ import annotations

import numpy as np
import pytest
from tests.protocol.parties import run_parties

from sphynx.core import Prg, ot
from sphynx.errors import SphynxError
from sphynx.protocol.channel import HEADER_BYTES, Channel, Traffic
from sphynx.protocol.ots import add_up_client, add_up_server, set_up_client, set_up_server


def assert_connected(receiver: ot.CorrelatedReceiver, sender: ot.CorrelatedSender) -> None:
    message, choices, t = receiver.correlated_random(640)
    tweak, pads = sender.late_pads(message, 640, random_choices=True)
    received = ot.received_pads(t, tweak)
    bits = np.unpackbits(choices.view(np.uint8), bitorder="little").astype(bool)
    assert (received == np.where(bits[:, None], pads.ones, pads.zeros)).all()
    assert (pads.ones != pads.zeros).any(axis=1).all()


def test_both_directions_work_and_sizes_are_those_documented() -> None:
    def server(channel: Channel) -> tuple[ot.CorrelatedReceiver, ot.CorrelatedSender, Traffic]:
        ots = add_up_server(channel, set_up_server(channel, Prg(), b"sizes"))
        assert ots.delta[0, 0] & np.uint64(1)
        return ots.up, ots.down, channel.take_record().total()

    def client(channel: Channel) -> tuple[ot.CorrelatedReceiver, ot.CorrelatedSender]:
        ots = add_up_client(channel, set_up_client(channel, Prg(), b"sizes"))
        return ots.down, ots.up

    (server_receives, server_sends, traffic), (client_receives, client_sends) = run_parties(server, client)
    assert_connected(client_receives, server_sends)
    assert_connected(server_receives, client_sends)
    assert traffic.sent_bytes == 4096 + 4128 + 2 * HEADER_BYTES
    assert traffic.received_bytes == 96 + 4112 + 1056 + 512 + 560 + 3 * HEADER_BYTES


def test_a_point_outside_the_group_ends_the_set_up() -> None:
    def client(channel: Channel) -> None:
        channel.send(bytes(96))

    with pytest.raises(SphynxError, match="group element"):
        run_parties(lambda channel: set_up_server(channel, Prg(), b""), client)
