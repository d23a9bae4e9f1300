"""A server and a client process of a benchmark: whichever fails, the other does not wait for it."""

import multiprocessing
import os
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import Any

import pytest

from sphynx.bench.private_parties import (
    Measured,
    accept_client,
    connect_to_server,
    plain_channel,
    prepare_and_infer,
    run_pair,
)
from sphynx.errors import SphynxError
from sphynx.protocol.bundle import Bundle
from sphynx.protocol.channel import Channel, local_pair
from tests.bench.test_workers import MENDING, fail, fail_once_told


def serve(told: Connection) -> bytearray:
    channel = accept_client(told, plain_channel, None)
    channel.send(b"down")
    return channel.receive(2)


def ask(told: Connection) -> bytearray:
    channel = connect_to_server(told, plain_channel, None)
    channel.send(b"up")
    return channel.receive(4)


def prepare_for_long(told: Connection) -> None:
    told.poll(None)  # the server is told nothing: until it is ended


def fail_once_connected(told: Connection) -> None:
    _channel = connect_to_server(told, plain_channel, None)
    raise ValueError("the reason")


def die_once_told(told: Connection) -> None:
    told.recv()
    os._exit(9)


def test_both_return_what_they_saw() -> None:
    assert run_pair(serve, ask, **MENDING) == (bytearray(b"up"), bytearray(b"down"))
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize(
    ("server", "client", "why"),
    [
        (fail, ask, "ValueError: the reason"),
        (prepare_for_long, fail, "ValueError: the reason"),  # before the server listens
        (serve, fail_once_told, "ValueError: the reason"),  # while it waits for the client to connect
        (serve, die_once_told, "without an error message"),
        (serve, fail_once_connected, "ValueError: the reason"),  # the server only sees a lost connection
    ],
)
def test_one_that_fails_is_named_and_the_other_is_ended(
    server: Callable[[Connection], Any], client: Callable[[Connection], Any], why: str
) -> None:
    with pytest.raises(SphynxError, match=why):
        run_pair(server, client, **MENDING)
    assert multiprocessing.active_children() == []


def test_a_bundle_is_gone_before_the_next_is_made() -> None:
    def run(channel: Channel) -> list[int]:
        alive: weakref.WeakSet[Bundle] = weakref.WeakSet()
        before, measured = [], Measured()

        def prepare() -> Bundle:
            before.append(len(alive))
            bundle = Bundle(bytes(16), "program", "server", "gmw", 1, {})
            alive.add(bundle)
            return bundle

        for _ in range(3):
            assert prepare_and_infer(channel, measured, prepare, lambda bundle: bundle.role) == "server"
        assert measured.first is not None
        assert len(measured.offline) == len(measured.online) == 2
        return before

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(run, local_pair())) == [[0, 0, 0], [0, 0, 0]]
