"""A link between two network namespaces for kernels without netem: a process that holds every packet for its time.

Each namespace has a TUN interface (Documentation/networking/tuntap.rst). What the kernel routes into one is read here
and written into the other; TCP above is the kernel's own. Each direction is

    packets -> [queue_bytes at most] -> sent at bits_per_s -> on the way for round_trip_s / 2 -> written

and a packet that finds the queue full is lost. As with netem, packets come as the kernel makes them for a device that
cuts them itself (TSO), here of at most MOST_PACKET_BYTES.
"""

from __future__ import annotations

import ctypes
import fcntl
import math
import os
import select
import struct
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

from sphynx.program.cost.link import Link

CLONE_NEWNET = 0x40000000
MOST_PACKET_BYTES = 16384
_READ_BYTES = 1 << 17
_READS = 64  # of one interface, before what is due elsewhere is written
# linux/if_tun.h
_TUNSETIFF, _TUNSETOFFLOAD = 0x400454CA, 0x400454D0
_IFF_TUN, _IFF_NO_PI, _IFF_VNET_HDR = 0x0001, 0x1000, 0x4000
_TUN_F_CSUM, _TUN_F_TSO4 = 0x01, 0x02


def enter_network(holder: int) -> None:
    """Move this process to the network namespace of another."""
    with Path(f"/proc/{holder}/ns/net").open() as namespace:
        if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")


def open_tun(name: str) -> int:
    """Make a TUN interface here. Packets have the kernel's offload header before them, which the other end takes."""
    opened = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(opened, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _IFF_TUN | _IFF_NO_PI | _IFF_VNET_HDR))
    fcntl.ioctl(opened, _TUNSETOFFLOAD, _TUN_F_CSUM | _TUN_F_TSO4)
    return opened


@dataclass
class Lane:
    """One direction; times are of the monotonic clock."""

    source: int
    sink: int
    delay_s: float
    bits_per_s: float
    queue_bytes: int
    free_at_s: float = 0.0
    on_the_way: deque[tuple[float, bytes]] = field(default_factory=deque)

    def admit(self, packet: bytes, now_s: float) -> bool:
        """Put a packet on its way unless what waits to be sent fills the queue; return whether it was."""
        start_s = max(self.free_at_s, now_s)
        if (start_s - now_s) * self.bits_per_s > 8 * self.queue_bytes:
            return False
        self.free_at_s = start_s + 8 * len(packet) / self.bits_per_s
        self.on_the_way.append((self.free_at_s + self.delay_s, packet))
        return True

    @property
    def due_s(self) -> float:
        return self.on_the_way[0][0] if self.on_the_way else math.inf

    def read(self) -> None:
        with suppress(BlockingIOError):
            for _ in range(_READS):
                self.admit(os.read(self.source, _READ_BYTES), time.monotonic())

    def write(self) -> None:
        while self.due_s <= time.monotonic():
            with suppress(OSError):  # an interface that is down takes nothing
                os.write(self.sink, self.on_the_way.popleft()[1])


def forward(told: Connection, holders: Sequence[tuple[str, int]], link: Link, queue_bytes: int) -> None:
    """Make an interface in each of two namespaces (name, process that holds it) and be the link until told to end.

    It goes before the parties where it may: a link does not wait for a core.
    """
    ends = []
    for name, holder in holders:
        enter_network(holder)
        ends.append(open_tun(name))
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    one, other = ends
    lanes = {
        source: Lane(source, sink, link.round_trip_s / 2, link.bits_per_s, queue_bytes)
        for source, sink in ((one, other), (other, one))
    }
    told.send(("done", None))
    while True:
        due_s = min(lane.due_s for lane in lanes.values())
        timeout_s = max(0.0, due_s - time.monotonic()) if math.isfinite(due_s) else None
        ready, _, _ = select.select([*lanes, told.fileno()], [], [], timeout_s)
        if told.fileno() in ready:
            return
        for source in ready:
            lanes[source].read()
        for lane in lanes.values():
            lane.write()
