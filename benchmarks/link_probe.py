"""Measures a link between two processes: its round trip and what it carries, over TCP without encryption."""

from __future__ import annotations

import socket
import statistics
import time
from functools import partial
from multiprocessing.connection import Connection

from sphynx.bench.private_parties import Place, run_pair
from sphynx.program.cost.link import Link

ROUND_TRIPS = 20
SENT_S = 1.0  # at the rate asked for; the first half is not timed, since TCP starts slowly
_MOST_BYTES = 1 << 30
_PIECE_BYTES = 1 << 20


def measured_link(place: Place, asked: Link) -> Link:
    """Measure the round trip (median) and what one direction carries once TCP is at speed."""
    half_bytes = int(min(_MOST_BYTES, asked.bits_per_s * SENT_S / 8) / 2)
    serve, ask = (partial(party, place=place, half_bytes=half_bytes) for party in (_serve, _ask))
    _, measured = run_pair(serve, ask, where="the link", remedy="Run it on a machine with less other work.")
    assert measured is not None
    return measured


def _serve(told: Connection, place: Place, half_bytes: int) -> Link | None:
    with socket.create_server((place("server"), 0)) as listener:
        told.send(("done", listener.getsockname()[1]))
        with listener.accept()[0] as client:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for _ in range(ROUND_TRIPS):
                client.sendall(client.recv(1))
            client.sendall(bytes(2 * half_bytes))
            client.recv(1)
    return None


def _ask(told: Connection, place: Place, half_bytes: int) -> Link | None:
    host = place("client")
    with socket.create_connection((host, told.recv())) as server:
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        trips = []
        for _ in range(ROUND_TRIPS):
            start_s = time.monotonic()
            server.sendall(b"?")
            server.recv(1)
            trips.append(time.monotonic() - start_s)
        _receive(server, half_bytes)
        start_s = time.monotonic()
        _receive(server, half_bytes)
        taken_s = time.monotonic() - start_s
        server.sendall(b".")
    return Link(statistics.median(trips), 8 * half_bytes / taken_s)


def _receive(source: socket.socket, count: int) -> None:
    while count > 0:
        count -= len(source.recv(min(count, _PIECE_BYTES)))
