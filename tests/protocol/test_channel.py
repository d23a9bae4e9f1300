"""The channel over a real socket pair: order, sizes, counting, hostile bytes, links, deadlines."""

from __future__ import annotations

import itertools
import os
import socket
import struct
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from sphynx.core import rlwe
from sphynx.errors import ConnectionLostError, OtherVersionError, PeerGaveUpError
from sphynx.program.cost.link import Link
from sphynx.protocol.channel import HEADER_BYTES, MAX_REASON_BYTES, WIRE_VERSION, Channel, local_pair
from sphynx.protocol.transport import UNSHARED_PENDING_BYTES, SocketStream


def test_messages_keep_their_order_and_bytes_are_counted() -> None:
    left, right = local_pair()
    with left.section("offline", "a"):
        left.send(b"one", b"two")
        left.send(b"")
    with right.section("offline", "a"):
        assert right.receive(6) == b"onetwo"
        assert right.receive(0) == b""
    right.send(b"back")
    assert left.receive(4) == b"back"
    assert left.record.total("offline").sent_bytes == 2 * HEADER_BYTES + 6
    assert right.record.total("offline") == right.record.total() + type(right.record.total())(
        -HEADER_BYTES - 4, 0, -1, 0, 0
    )
    assert left.record.total().rounds == 1 and right.record.total().rounds == 0


def test_both_sides_may_send_much_before_they_read() -> None:
    left, right = local_pair()
    big = os.urandom(40 << 20)
    left.send(big)
    right.send(big)
    assert left.receive(len(big)) == big
    assert right.receive(len(big)) == big


def test_where_memory_is_short_a_stream_keeps_little_for_a_peer_that_does_not_read() -> None:
    is_short = [False]
    left, right = socket.socketpair()
    stream, slice_bytes = SocketStream(left, is_memory_short=lambda: is_short[0]), 1 << 18
    for _ in range(256):
        stream.send([bytes(slice_bytes)])
    assert stream.pending_bytes > 16 * UNSHARED_PENDING_BYTES  # while there is memory it keeps what it is given
    is_short[0], stream.timeout_s = True, 0.2
    with pytest.raises(ConnectionLostError, match="reads too slowly"):
        for _ in range(256):  # as long as the writer has not filled the kernel's buffers, it makes room for one more
            stream.send([bytes(slice_bytes)])
    stream.close(wait_s=0)
    right.close()


def test_where_memory_is_short_a_slow_reader_gets_everything() -> None:
    left, right = socket.socketpair()
    stream, peer = SocketStream(left, is_memory_short=lambda: True), SocketStream(right)
    message, most_bytes = os.urandom(1 << 18), 0
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(lambda: all(peer.receive(len(message)) == message for _ in range(128)))
        for _ in range(128):
            stream.send([message])
            most_bytes = max(most_bytes, stream.pending_bytes)
        assert reading.result() and most_bytes <= UNSHARED_PENDING_BYTES
    stream.close()
    peer.close()


def test_a_buffer_may_be_reused_after_sending() -> None:
    left, right = local_pair()
    buffer = bytearray(b"a" * (16 << 20))
    left.send(buffer)
    buffer[:] = b"b" * len(buffer)
    assert set(right.receive(len(buffer))) == {ord("a")}


@pytest.mark.parametrize(
    "wire",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        struct.pack("<2sBBI", b"Sx", WIRE_VERSION - 1, 0, 4) + b"xxxx",
        struct.pack("<2sBBI", b"Sx", WIRE_VERSION, 0, 2**32 - 1),
        struct.pack("<2sBBI", b"Sx", WIRE_VERSION, 0, 3) + b"xxx",
        struct.pack("<2sBBI", b"Sx", WIRE_VERSION, 7, 4) + b"xxxx",
        struct.pack("<2sBBI", b"Sx", WIRE_VERSION, 1, 1 << 20),
        b"Sx",
    ],
)
def test_hostile_bytes_end_the_connection(wire: bytes) -> None:
    raw, ours = socket.socketpair()
    channel = Channel(SocketStream(ours))
    raw.sendall(wire)
    raw.close()
    with pytest.raises(ConnectionLostError):
        channel.receive(4)


def test_a_message_of_an_unknown_kind_is_refused_as_such() -> None:
    """It said that 4 bytes came where 4 were expected."""
    raw, ours = socket.socketpair()
    raw.sendall(struct.pack("<2sBBI", b"Sx", WIRE_VERSION, 7, 4) + b"xxxx")
    with pytest.raises(ConnectionLostError, match="a message of unknown kind 7"):
        Channel(SocketStream(ours)).receive(4)
    raw.close()


@pytest.mark.parametrize("version", [WIRE_VERSION - 1, WIRE_VERSION + 1])
def test_a_peer_of_another_version_is_refused_by_name(version: int) -> None:
    raw, ours = socket.socketpair()
    raw.sendall(struct.pack("<2sBBI", b"Sx", version, 0, 4) + b"xxxx")
    with pytest.raises(ConnectionLostError, match=f"the peer speaks version {version}") as refused:
        Channel(SocketStream(ours)).receive(4)
    assert isinstance(refused.value, OtherVersionError)
    assert f"this one speaks version {WIRE_VERSION}" in refused.value.remedy
    raw.close()


@pytest.mark.parametrize("version", [0, WIRE_VERSION - 1, WIRE_VERSION + 1, 255])
def test_a_peer_of_any_version_can_say_why_it_gives_up(version: int) -> None:
    """This frame never changes: an old client is told by it which version to install."""
    raw, ours = socket.socketpair()
    raw.sendall(struct.pack("<2sBBI", b"Sx", version, 1, 14) + b"newer\ninstall!")
    with pytest.raises(PeerGaveUpError, match="newer") as refused:
        Channel(SocketStream(ours)).receive(4)
    assert refused.value.remedy == "The peer advises: install!"
    raw.close()


def test_a_version_stands_for_one_choice_of_rlwe_parameters() -> None:
    """Both parties derive them and neither sends them: who changes them must change WIRE_VERSION too."""
    small, large = [268369921, 268361729, 134176769, 8380417], [268369921, 268271617, 268238849, 268189697, 268091393]
    expected = {8: (small, 3), 39: (small, 3), 40: (small, 4), 48: (small, 4), 49: (large, 4), 64: (large, 4)}
    derived = {bits: rlwe.Params.for_ring(bits) for bits in expected}
    assert {bits: (params.primes, params.reply_primes) for bits, params in derived.items()} == expected
    assert WIRE_VERSION == 17


@pytest.mark.parametrize("expected_bytes", [0, 4, 26, 27, 1000, 1 << 20])
def test_a_peer_that_gives_up_says_why(expected_bytes: int) -> None:
    """In whole, whether the message that was waited for is shorter or longer than the reason."""
    left, right = local_pair()
    left.give_up("the program is another one", "Fetch it\x1b[2J again.")
    with pytest.raises(PeerGaveUpError, match=r"^peer: the program is another one$") as told:
        right.receive(expected_bytes)
    assert told.value.remedy == "The peer advises: Fetch it[2J again."  # nothing that a terminal would obey


@pytest.mark.parametrize(("reason", "remedy"), [("no" * 1000, ""), ("no", "Wait " * 1000), ("no", "")])
def test_what_a_peer_says_when_it_gives_up_is_bounded(reason: str, remedy: str) -> None:
    left, right = local_pair()
    left.give_up(reason, remedy)
    with pytest.raises(PeerGaveUpError) as told:
        right.receive(4)
    assert reason.startswith(told.value.what) and len(told.value.what) <= MAX_REASON_BYTES
    advice = told.value.remedy.removeprefix("The peer advises: ")
    assert advice.startswith(remedy[:100] or "See the peer's log") and len(advice) <= MAX_REASON_BYTES


def test_what_is_not_unicode_can_be_said_as_well() -> None:
    """As names of files may be: what is given up is still closed."""
    left, right = local_pair()
    left.give_up("no file \udcff", "")
    with pytest.raises(PeerGaveUpError, match=r"no file \?$"):
        right.receive(4)


@pytest.mark.parametrize("size", [1, 7, 8, 9, 100, (1 << 18) - 1, 1 << 18, (1 << 18) + 1])
def test_a_message_may_come_in_pieces_and_with_the_next_one(size: int) -> None:
    raw, ours = socket.socketpair()
    channel, message = Channel(SocketStream(ours)), os.urandom(size)
    wire = struct.pack("<2sBBI", b"Sx", WIRE_VERSION, 0, size) + message
    cuts = sorted({0, 3, 8, 9, 8 + size // 2, 2 * len(wire)})

    def send_pieces() -> None:
        for begin, end in itertools.pairwise(cuts):
            raw.sendall((wire + wire)[begin:end])

    with ThreadPoolExecutor(1) as other:
        sent = other.submit(send_pieces)
        assert channel.receive(size) == message
        assert channel.receive_up_to(size) == message
        sent.result()
    assert channel.record.total().received_bytes == 2 * len(wire)
    raw.close()


def test_a_silent_peer_is_given_up() -> None:
    _left, right = local_pair(timeout_s=0.05)
    with pytest.raises(ConnectionLostError, match="in time"):
        right.receive(4)


def test_a_peer_is_not_silent_while_it_takes_what_was_sent() -> None:
    """The question takes three seconds on this link, the answer has two."""
    left, right = socket.socketpair()
    question = bytes(1 << 18)
    asking = SocketStream(left, timeout_s=2.0, link=Link(round_trip_s=0.0, bits_per_s=8 * len(question) / 3))
    answering = SocketStream(right, timeout_s=60)

    def answer() -> None:
        answering.receive(len(question))
        answering.send([question[:1]])

    with ThreadPoolExecutor(1) as pool:
        answered = pool.submit(answer)
        asking.send([question])
        assert asking.receive(1) == question[:1]
        answered.result()
    asking.close()
    answering.close()


def test_a_peer_that_takes_nothing_is_given_up_also_while_much_is_pending() -> None:
    left, right = socket.socketpair()
    asking = SocketStream(left, timeout_s=0.5)
    asking.send([bytes(1 << 26)])  # more than a kernel takes; at the slowest rate it would have 17 minutes
    started = time.monotonic()
    with pytest.raises(ConnectionLostError):
        asking.receive(1)
    assert time.monotonic() - started < 60
    asking.close(wait_s=0)
    right.close()


def test_messages_that_are_each_in_time_end_when_all_together_are_not() -> None:
    left, right = (SocketStream(sock) for sock in socket.socketpair())
    with ThreadPoolExecutor(1) as pool:

        def ask() -> None:
            with left.ending_within(0.2), pytest.raises(ConnectionLostError, match=r"in time|in all"):
                while True:  # the peer answers at once
                    left.send([b"question"])
                    left.receive(6)

        def answer() -> None:
            with pytest.raises(ConnectionLostError):
                while True:
                    right.receive(8)
                    right.send([b"answer"])

        answering = pool.submit(answer)
        ask()
        left.send([b"question"])  # the end was that of one piece of work, not of the connection
        left.close()
        answering.result()
    right.close()


def test_an_emulated_link_delays_by_half_a_round_trip_and_by_the_bytes() -> None:
    left, right = local_pair(Link(round_trip_s=0.04, bits_per_s=8e6))
    start_s = time.monotonic()
    left.send(bytes(50_000 - HEADER_BYTES))
    right.receive(50_000 - HEADER_BYTES)
    assert time.monotonic() - start_s >= 0.07


def test_a_record_can_be_taken_in_parts() -> None:
    left, right = local_pair()
    left.send(b"x")
    assert left.take_record().total().sent_messages == 1
    assert left.record.total().sent_messages == 0
    assert right.receive(1) == b"x"
