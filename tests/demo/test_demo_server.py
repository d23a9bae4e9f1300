"""The demonstration's server is a process of its own: it ends with the block, whatever happens inside."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import numpy as np
import pytest
from tests.service.tiny import save_tiny

from sphynx.demo.server import HOST, connected_client
from sphynx.errors import SphynxError


def test_the_server_ends_with_the_block_and_its_log_is_whole(tmp_path: Path) -> None:
    save_tiny(tmp_path / "compiled")
    before = set(threading.enumerate())
    with (
        pytest.raises(KeyboardInterrupt),
        connected_client(tmp_path / "compiled", tmp_path / "demo") as client,
    ):
        client.infer(np.zeros((1, 4, 4), np.uint8))
        raise KeyboardInterrupt
    assert '"event": "stopped"' in (tmp_path / "demo" / "server.log").read_text()
    assert set(threading.enumerate()) <= before
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((HOST, client._port))
    key = tmp_path / "demo" / "keys" / "server" / "key.pem"
    assert key.stat().st_mode & 0o077 == 0


def test_a_server_that_does_not_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(SphynxError, match="did not start"), connected_client(tmp_path, tmp_path / "demo"):
        pass
