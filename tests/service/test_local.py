"""Two parties on this machine: a served program asked about a set of images, and TLS for benchmarks."""

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from sphynx.errors import SphynxError
from sphynx.program.interpret import interpret
from sphynx.service.exam import examine
from sphynx.service.local import HOST, connected_client, make_local_keys
from tests.service.tiny import save_tiny


def test_a_set_of_images_is_asked_privately(tmp_path: Path) -> None:
    compiled = tmp_path / "compiled"
    program, weights = save_tiny(compiled)
    images = np.random.default_rng(0).integers(0, 256, (5, 1, 4, 4)).astype(np.uint8)
    expected = interpret(program, weights, images)
    labels = expected.argmax(axis=1)
    labels[0] = (labels[0] + 1) % 3
    told: list[int] = []
    with connected_client(compiled, tmp_path / "parties") as client:
        exam = examine(client, "gmw", images, labels, expected, done=told.append)
        wrong = examine(client, "gc", images[:1], labels[:1], expected[:1] + 1)
    assert (exam.images, exam.equal_to_oracle, exam.correct) == (5, 5, 4)
    assert exam.accuracy == pytest.approx(0.8) and exam.online_bytes > 0
    assert told == [4, 5]
    assert (wrong.equal_to_oracle, wrong.backend) == (0, "gc")


def test_the_server_ends_with_the_block_and_its_log_is_whole(tmp_path: Path) -> None:
    save_tiny(tmp_path / "compiled")
    before = set(threading.enumerate())
    with (
        pytest.raises(KeyboardInterrupt),
        connected_client(tmp_path / "compiled", tmp_path / "parties") as client,
    ):
        client.infer(np.zeros((1, 4, 4), np.uint8))
        raise KeyboardInterrupt
    assert '"event": "stopped"' in (tmp_path / "parties" / "server.log").read_text()
    assert set(threading.enumerate()) <= before
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((HOST, client._address.port))
    key = tmp_path / "parties" / "keys" / "server" / "key.pem"
    assert key.stat().st_mode & 0o077 == 0


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    with (
        pytest.raises(SphynxError, match="did not start"),
        connected_client(tmp_path / "nothing", tmp_path / "parties"),
    ):
        pass


def test_benchmark_channels_are_tls_with_both_proven(tmp_path: Path) -> None:
    keys = make_local_keys(tmp_path / "keys")
    left, right = socket.socketpair()
    with ThreadPoolExecutor(1) as pool:
        served = pool.submit(keys.open_channel, left, "server", None)
        client = keys.open_channel(right, "client", None)
        server = served.result()
    client.send(b"hello")
    assert server.receive(5) == b"hello"
    client.close()
    server.close()
