"""Layers of GMW ReLUs in several batches: the order of messages, the material put together, and what a party holds."""

from __future__ import annotations

import multiprocessing
import socket

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.protocol.relu_runs import layer_of, run_layers
from tests.protocol.test_relu import expected

from sphynx.bench.machine import peak_memory_bytes
from sphynx.core import Prg
from sphynx.protocol import gmw_cuts
from sphynx.protocol.channel import HEADER_BYTES, Channel
from sphynx.protocol.gmw_cuts import CUT, WINDOW_BYTES, Turn, cuts_of, turns
from sphynx.protocol.gmw_material import offline_messages
from sphynx.protocol.ots import add_up_client, add_up_server, set_up_client, set_up_server
from sphynx.protocol.relu import relu_client, relu_server
from sphynx.protocol.relu_layer import Arrays
from sphynx.protocol.transport import SocketStream

SEVERAL = 2 * CUT + 77
LARGE = 12 * CUT
FIXED_BYTES = 120 << 20  # what a party may hold beside its material, however large the layer is


@given(st.lists(st.integers(1, WINDOW_BYTES + 1), max_size=40))
def test_every_batch_is_asked_for_and_then_converted_within_the_window(request_bytes: list[int]) -> None:
    asked, converted, open_bytes = 0, 0, 0
    for turn in turns(request_bytes):
        if turn.converts:
            assert turn.batch == converted < asked
            open_bytes -= request_bytes[converted]
            converted += 1
        else:
            assert turn.batch == asked
            open_bytes += request_bytes[asked]
            asked += 1
            assert open_bytes <= WINDOW_BYTES or asked == converted + 1
    assert asked == converted == len(request_bytes)


def test_what_fits_the_window_is_asked_for_at_once() -> None:
    """Rounds do not grow with layers."""
    each = WINDOW_BYTES // 3
    first = [Turn(0, False), Turn(1, False), Turn(2, False), Turn(0, True), Turn(3, False), Turn(1, True)]
    assert [*turns([each] * 4)][:6] == first


def test_layers_of_several_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    layers = [layer_of(9, 13, 3, count, f"cell {count}/relu") for count in (SEVERAL, 65, CUT + 64)]
    assert [cut.shape.count for cut in cuts_of(layers)] == [CUT, CUT, 77, 65, CUT, 64]
    xs = [(np.arange(layer.shape.count) % 511 - 255).astype(np.uint64) & layer.shape.ring_mask for layer in layers]
    requests = [offline_messages(cut.shape).request for cut in cuts_of(layers)]
    for window in (WINDOW_BYTES, 2 * requests[0], 1):  # all at once, some, one batch at a time
        monkeypatch.setattr(gmw_cuts, "WINDOW_BYTES", window)
        run = run_layers("gmw", layers, xs)
        assert run.results == [expected(layer, x) for layer, x in zip(layers, xs, strict=True)]
        sizes = [offline_messages(cut.shape).total + 4 * HEADER_BYTES for cut in cuts_of(layers)]
        assert run.server.record.total("offline").bytes == sum(sizes)


def _prepare(role: str, end: socket.socket, told: multiprocessing.Queue[tuple[str, int, int]]) -> None:
    layer, channel, prg = layer_of(28, 32, 8, LARGE), Channel(SocketStream(end)), Prg()
    x = np.zeros(LARGE, np.uint64)

    def server() -> list[Arrays]:
        ots = add_up_server(channel, set_up_server(channel, prg, b"memory"))
        return relu_server("gmw").offline(channel, ots, [layer])

    def client() -> list[Arrays]:
        ots = add_up_client(channel, set_up_client(channel, prg, b"memory"))
        return relu_client("gmw").offline(channel, ots, [layer], [x], [x])

    before = peak_memory_bytes()
    (material,) = server() if role == "server" else client()
    told.put((role, peak_memory_bytes() - before, sum(array.nbytes for array in material.values())))
    channel.close()


def test_a_large_layer_takes_the_memory_of_its_material_and_no_more_than_a_fixed_amount() -> None:
    """Two processes of their own; the OTs of the whole layer would take ten times its material."""
    context = multiprocessing.get_context("spawn")
    told = context.Queue()
    ends = socket.socketpair()
    parties = [
        context.Process(target=_prepare, args=(role, end, told))
        for role, end in zip(("server", "client"), ends, strict=True)
    ]
    for party in parties:
        party.start()
    for end in ends:
        end.close()
    found = [told.get(timeout=300) for _ in parties]
    for party in parties:
        party.join()
    for role, grown, kept in found:
        assert grown <= kept + FIXED_BYTES, f"{role}: {grown:,} bytes for {kept:,}"
