"""Two GMW parties that hand each other their messages, without a channel."""

from __future__ import annotations

import numpy as np

from sphynx.core import _native

Words = np.ndarray


def exchange(server: _native.GmwServer, client: _native.GmwClient, count: int) -> tuple[Words, list[bytes]]:
    """(the server's shares, all messages in order)."""
    messages = [server.first()]
    while not client.is_over:
        messages.append(client.answer(received(messages[-1])))
        if not client.is_over:
            messages.append(server.answer(received(messages[-1])))
    y = np.empty(count, np.uint64)
    server.finish(received(messages[-1]), y)
    return y, messages


def received(message: bytes) -> np.ndarray:
    return np.frombuffer(message, np.uint8)
