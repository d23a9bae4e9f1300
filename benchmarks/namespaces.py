"""Private inference between two network namespaces: `python -m benchmarks.namespaces`.

Each party has a network stack and half of the cores of its own; a pair of virtual interfaces joins them, and netem
(tc-netem(8)) delays and limits every packet on both ends. So links are real TCP over a real queue: slow start, windows
and losses where a queue overflows are in the times, which the delays that `sphynx bench private --link` adds lack.

It needs root, util-linux, iproute2 and a kernel with netem; without netem the loopback link alone can be measured.
"""

from __future__ import annotations

import ctypes
import math
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tools.command import run as run_command

from sphynx.bench.private_parties import Place
from sphynx.cli import bench_options as bench
from sphynx.cli import options as opt
from sphynx.cli.output_files import Out
from sphynx.errors import InputError
from sphynx.program.cost.link import Link
from sphynx.protocol.bundle import Role

ADDRESSES: dict[Role, str] = {"server": "10.77.0.1", "client": "10.77.0.2"}
PACKET_BYTES = 1500
LEAST_QUEUE = 1000  # packets, netem's own; a link gets room for two round trips of what it can carry, if that is more
CLONE_NEWNET = 0x40000000


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

    As `sphynx bench private`, with TLS, but links are netem's: delays, rates and queues of real packets.

    Examples:

      python -m benchmarks.namespaces sphynx-cifar100-25k --backend gmw --link lan,wan -o links.json
    """
    delays = any(one is not None for one in bench.links_for(link).values())
    if why := why_impossible(netem=delays):
        raise InputError(why, where="namespaces", remedy="Use such a machine, or sphynx bench private --link.")
    with tempfile.TemporaryDirectory(prefix="sphynx-bench-") as temporary:
        voice = opt.voice_for(verbose, quiet)
        folder = Path(temporary)
        run = bench.measure(programs, "", backend, link, repeat, "single", folder, voice, network=two_hosts)
    bench.hand_out(run.to_json(), as_json, out)
    if not as_json:
        bench.print_rows("Private inference between two namespaces", run)
    bench.require_exact(run, "benchmarks.namespaces")


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
        with Path(f"/proc/{self.server if role == 'server' else self.client}/ns/net").open() as namespace:
            if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")
        return ADDRESSES["server"]


@contextmanager
def two_hosts(link: Link | None) -> Iterator[tuple[None, Place]]:
    """Make two namespaces and the link between them, which last as long as the context."""
    with ExitStack() as open_ones:
        holders: dict[Role, int] = {role: open_ones.enter_context(_namespace()) for role in ADDRESSES}
        _inside(holders["server"], "ip link add server type veth peer name client")
        _inside(holders["server"], f"ip link set client netns {holders['client']}")
        for role, address in ADDRESSES.items():
            _inside(holders[role], f"ip address add {address}/24 dev {role}")
            _inside(holders[role], f"ip link set {role} up")
            if link is not None:
                _inside(holders[role], f"tc qdisc add dev {role} root {netem_words(link)}")
        yield None, Hosts(holders["server"], holders["client"])


def netem_words(link: Link) -> str:
    """Write one direction of a link for tc: half of the round trip, and the rate."""
    words = f"netem delay {round(link.round_trip_s / 2 * 1e6)}us"
    if not math.isfinite(link.bits_per_s):
        return words
    carried = 2 * link.round_trip_s * link.bits_per_s / (8 * PACKET_BYTES)
    return f"{words} rate {round(link.bits_per_s)}bit limit {max(LEAST_QUEUE, math.ceil(carried))}"


def why_impossible(*, netem: bool) -> str | None:
    """Say why this machine cannot be used, if it cannot."""
    missing = [tool for tool in ("unshare", "nsenter", "ip", "tc") if shutil.which(tool) is None]
    if missing:
        return f"the programs {', '.join(missing)} are missing"
    probe = "ip link add one type veth peer name other"
    for words, why in (
        (probe, "network namespaces and virtual interfaces cannot be made here, which takes root"),
        (f"{probe} && tc qdisc add dev one root netem delay 1ms", "this kernel has no netem"),
    )[: 2 if netem else 1]:
        if subprocess.run(["unshare", "--net", "sh", "-c", words], capture_output=True, check=False).returncode:
            return why
    return None


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
