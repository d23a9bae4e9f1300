"""Private inference between two network namespaces: `python -m benchmarks.namespaces`.

Each party has a network stack and half of the cores of its own. Over loopback a pair of virtual interfaces joins them.
On other links netem (tc-netem(8)) delays and limits every packet on both ends of that pair; where the kernel has no
netem, a process between two TUN interfaces does (`benchmarks.forwarder`), on whichever core is free. Either way links
are real TCP over a real queue: slow start, windows and losses where a queue overflows are in the times, which the
delays that `sphynx bench private --link` adds lack. What was used, and the links as measured between the parties before
any of them was asked, are in the results.

It needs root, util-linux, iproute2, and netem or /dev/net/tun; with neither the loopback link alone can be measured.
"""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from tools.command import run as run_command

from benchmarks.forwarder import MOST_PACKET_BYTES, enter_network, forward
from benchmarks.link_probe import measured_link
from sphynx.bench.private_parties import Place
from sphynx.bench.workers import tell, told_by, values_of, workers
from sphynx.cli import bench_options as bench
from sphynx.cli import options as opt
from sphynx.cli.output_files import Out
from sphynx.errors import InputError
from sphynx.program.cost.link import Link
from sphynx.protocol.bundle import Role

ADDRESSES: dict[Role, str] = {"server": "10.77.0.1", "client": "10.77.0.2"}
PACKET_BYTES = 1500
LEAST_QUEUE = 1000  # packets, netem's own; a link gets room for two round trips of what it can carry, if that is more

CONGESTION_CONTROL = Path("/proc/sys/net/ipv4/tcp_congestion_control")  # new namespaces take it from the first

Shaper = Literal["netem", "forwarder"]  # what delays and limits packets


def namespaces(
    programs: bench.Programs = None,
    backend: bench.Backends = "gc,gmw",
    link: bench.Links = "loopback,lan,wan",
    repeat: bench.Repeat = 5,
    out: Out = None,
    verbose: opt.Verbose = False,
    quiet: opt.Quiet = False,
    as_json: opt.Json = False,
) -> None:
    """Measure private inference between two namespaces of this machine, each with half of its cores.

    As `sphynx bench private`, with TLS, but packets are real: they are delayed, limited and queued by netem, or
    where the kernel lacks it by a process between the two.

    Examples:

      python -m benchmarks.namespaces sphynx-cifar100-25k --backend gmw --link lan,wan -o links.json
    """
    links = bench.links_for(link)
    delayed = [one for one in links.values() if one is not None]
    by = shaper_here()
    if why := why_impossible(by, shaped=bool(delayed)):
        raise InputError(why, where="namespaces", remedy="Use such a machine, or sphynx bench private --link.")
    hosts = partial(two_hosts, by=by)
    measured = []
    for one in delayed:
        with hosts(one) as (_, place):
            measured.append({"asked": one.to_json(), "measured": measured_link(place, one).to_json()})
    with tempfile.TemporaryDirectory(prefix="sphynx-bench-") as temporary:
        voice = opt.voice_for(verbose, quiet)
        folder = Path(temporary)
        run = bench.measure(programs, "", backend, link, repeat, "single", folder, voice, network=hosts)
    network = {"shaped_by": by if delayed else None, "congestion_control": CONGESTION_CONTROL.read_text().strip()}
    bench.hand_out({**run.to_json(), **network, "links": measured}, as_json, out)
    if not as_json:
        bench.print_rows("Private inference between two namespaces", run)
        for pair in measured:
            print(link_words(pair, by))
    bench.require_exact(run, "benchmarks.namespaces")


def link_words(pair: dict[str, Any], by: Shaper | None) -> str:
    """Say what a link turned out to be: `lan by netem: round trip 0.62 ms for 0.5, 940 Mbit/s for 1000`."""
    asked, measured = Link.from_json(pair["asked"]), Link.from_json(pair["measured"])
    return (
        f"{asked.name} by {by}: round trip {1e3 * measured.round_trip_s:.3g} ms for {1e3 * asked.round_trip_s:g}, "
        f"{measured.bits_per_s / 1e6:.0f} Mbit/s for {asked.bits_per_s / 1e6:g}"
    )


@dataclass(frozen=True)
class Hosts:
    """Two namespaces, as the processes that hold them; called in a party's process it moves there."""

    server: int
    client: int

    def __call__(self, role: Role) -> str:
        cores = sorted(os.sched_getaffinity(0))
        if len(cores) > 1:
            half = len(cores) // 2
            os.sched_setaffinity(0, cores[:half] if role == "server" else cores[half:])
        enter_network(self.server if role == "server" else self.client)
        return ADDRESSES["server"]


@contextmanager
def two_hosts(link: Link | None, by: Shaper | None) -> Iterator[tuple[None, Place]]:
    """Make two namespaces and the link between them, which last as long as the context."""
    with ExitStack() as open_ones:
        holders: dict[Role, int] = {role: open_ones.enter_context(_namespace()) for role in ADDRESSES}
        if link is not None and by == "forwarder":
            open_ones.enter_context(_forwarder(holders, link))
        else:
            _inside(holders["server"], "ip link add server type veth peer name client")
            _inside(holders["server"], f"ip link set client netns {holders['client']}")
        for role, address in ADDRESSES.items():
            _inside(holders[role], f"ip address add {address}/24 dev {role}")
            _inside(holders[role], f"ip link set {role} up")
            if link is not None and by == "netem":
                _inside(holders[role], f"tc qdisc add dev {role} root {netem_words(link)}")
        yield None, Hosts(holders["server"], holders["client"])


def queue_packets(link: Link) -> int:
    """Count the packets that one direction of a link has room for."""
    if not math.isfinite(link.bits_per_s):
        return LEAST_QUEUE
    return max(LEAST_QUEUE, math.ceil(2 * link.round_trip_s * link.bits_per_s / (8 * PACKET_BYTES)))


def netem_words(link: Link) -> str:
    """Write one direction of a link for tc: half of the round trip, and the rate."""
    words = f"netem delay {round(link.round_trip_s / 2 * 1e6)}us"
    if not math.isfinite(link.bits_per_s):
        return words
    return f"{words} rate {round(link.bits_per_s)}bit limit {queue_packets(link)}"


def shaper_here() -> Shaper | None:
    """Name what can shape a link on this machine: netem where the kernel has it."""
    if _can("ip link add one type veth peer name other && tc qdisc add dev one root netem delay 1ms"):
        return "netem"
    return "forwarder" if _can("ip tuntap add dev one mode tun vnet_hdr") else None


def why_impossible(by: Shaper | None, *, shaped: bool) -> str | None:
    """Say why this machine cannot be used, if it cannot."""
    missing = [tool for tool in ("unshare", "nsenter", "ip", "tc") if shutil.which(tool) is None]
    if missing:
        return f"the programs {', '.join(missing)} are missing"
    if not _can("ip link add one type veth peer name other"):
        return "network namespaces and virtual interfaces cannot be made here, which takes root"
    if shaped and by is None:
        return "this kernel has neither netem nor TUN interfaces"
    return None


def _can(words: str) -> bool:
    """Try something in a network namespace that is gone afterwards."""
    if shutil.which("unshare") is None:
        return False
    return not subprocess.run(["unshare", "--net", "sh", "-c", words], capture_output=True, check=False).returncode


@contextmanager
def _forwarder(holders: dict[Role, int], link: Link) -> Iterator[None]:
    """Run the process that is the link, with an interface named after its role in each namespace."""
    queue_bytes = queue_packets(link) * PACKET_BYTES
    with workers((forward, list(holders.items()), link, queue_bytes)) as (end,):
        values_of([told_by(end)], where="namespaces", remedy="Run it as root, where /dev/net/tun is.")
        for role, holder in holders.items():
            _inside(holder, f"ip link set {role} mtu {PACKET_BYTES} gso_max_size {MOST_PACKET_BYTES}")
        yield
        tell(end, "end")


@contextmanager
def _namespace() -> Iterator[int]:
    """Give a process that holds a network namespace of its own, open as long as its input is."""
    holds = ["unshare", "--net", "sh", "-c", "ip link set lo up && echo ready && exec cat"]
    holder = subprocess.Popen(holds, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdin is not None and holder.stdout is not None
    try:
        if holder.stdout.readline() != "ready\n":
            raise InputError("a network namespace cannot be made", where="unshare", remedy="Run it as root.")
        yield holder.pid
    finally:
        holder.stdin.close()
        holder.wait()
        holder.stdout.close()


def _inside(holder: int, words: str) -> None:
    ran = subprocess.run(
        ["nsenter", f"--net=/proc/{holder}/ns/net", *words.split()], capture_output=True, text=True, check=False
    )
    if ran.returncode:
        raise InputError(f"`{words}` failed: {ran.stderr.strip()}", where="namespaces", remedy="Run it as root.")


if __name__ == "__main__":
    run_command(namespaces)
