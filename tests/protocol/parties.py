"""Runs the two parties of a protocol in two threads over a socket pair; the native core releases the lock."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from sphynx.protocol.channel import Channel, local_pair
from sphynx.protocol.transport import MAX_PENDING_BYTES

Left = TypeVar("Left")
Right = TypeVar("Right")


def run_parties(
    server: Callable[[Channel], Left],
    client: Callable[[Channel], Right],
    *,
    max_pending_bytes: int = MAX_PENDING_BYTES,
    timeout_s: float = 30.0,
) -> tuple[Left, Right]:
    """Each party gets its end. A failure of one closes its end, which ends the other's waiting."""
    left, right = local_pair(timeout_s=timeout_s, max_pending_bytes=max_pending_bytes)

    def closing(party: Callable[[Channel], Left | Right], channel: Channel) -> Left | Right:
        try:
            return party(channel)
        finally:
            channel.close()

    with ThreadPoolExecutor(2) as pool:
        served = pool.submit(closing, server, left)
        asked = pool.submit(closing, client, right)
        for future in (asked, served):
            failure = future.exception()
            if failure is not None and "closed" not in str(failure):
                raise failure
        return served.result(), asked.result()  # type: ignore[return-value]
