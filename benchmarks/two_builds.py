#!/usr/bin/env python3
"""Compare the CPU time and the bytes of the offline phase between this build and an earlier one, in one run.

    git worktree add ../before COMMIT    # then install it there, into a .venv of its own
    python -m benchmarks.two_builds ../before stream-cifar100-25k sphynx-cifar100-25k --group 16 --repeat 7

Both parties of both builds are processes of their own (`two_builds_party.py`) with one thread each, connected by TLS
over loopback. They prepare by turns, GMW, each way in every round: the earlier build a bundle, this one a bundle and a
group. CPU seconds are each process's own, for a bundle; ratios are of neighbouring preparations, so that they compare
on a busy machine, too, and their medians are printed with what lies around them. The first round, with the set-up, is
not counted, and a bundle of each way's last round has to answer as the oracle.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sphynx.service.local import LocalKeys, make_local_keys

PARTY = Path(__file__).with_name("two_builds_party.py")
ROLES = ("server", "client")


@dataclass(frozen=True)
class Way:
    """How bundles are prepared: by which build, how many at once, and by which OTs."""

    name: str
    earlier: bool
    group: int
    ots: tuple[str, str] = ("softspoken", "softspoken")  # in `down`, in `up`


class Build:
    """The two parties of one build, of which each does what it is told."""

    def __init__(self, python: Path, network: str, keys: LocalKeys, ending: ExitStack) -> None:
        self._parties: list[subprocess.Popen[str]] = []
        port = 0
        for role in ROLES:
            command = [str(python), "-P", str(PARTY), role, network, str(keys.server), str(keys.client), str(port)]
            party = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            ending.callback(party.kill)
            self._parties.append(party)
            if role == "server":
                port = self._told(party)["port"]

    def prepare(self, way: Way, answering: bool) -> dict[str, Any]:
        """Return what both say of this preparation, by role; CPU seconds are for each bundle."""
        order = {"group": way.group, "ots": way.ots, "answering": answering}
        for party in self._parties:
            assert party.stdin
            party.stdin.write(json.dumps(order) + "\n")
            party.stdin.flush()
        return dict(zip(ROLES, map(self._told, self._parties), strict=True))

    @staticmethod
    def _told(party: subprocess.Popen[str]) -> dict[str, Any]:
        assert party.stdout
        line = party.stdout.readline()
        if not line:
            sys.exit("a party ended: what it said is above")
        return dict(json.loads(line))


def measure(network: str, pythons: tuple[Path, Path], ways: list[Way], repeats: int) -> None:
    found: list[list[dict[str, Any]]] = []
    with ExitStack() as ending:
        keys = make_local_keys(Path(ending.enter_context(tempfile.TemporaryDirectory(prefix="sphynx-builds-"))))
        earlier, this = (Build(python, network, keys, ending) for python in pythons)
        for number in range(repeats + 1):
            told = [(earlier if way.earlier else this).prepare(way, number == repeats) for way in ways]
            found += [told] if number else []
    for at, way in enumerate(ways):
        own = [told[at] for told in found]
        cells = [f"{statistics.mean(each['client']['bytes'] for each in own) / 1e6:.2f}"]
        for roles in (("server",), ("client",), ROLES):
            seconds, first = ([_cpu_s(told[which], roles) for told in found] for which in (at, 0))
            ratios = sorted(one / other for one, other in zip(seconds, first, strict=True))
            cells.append(f"{1e3 * statistics.median(seconds):.0f}")
            cells.append(f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} .. {ratios[-1]:.2f})")
        print(f"| {network} | {way.name} | " + " | ".join(cells) + " |", flush=True)


def _cpu_s(told: dict[str, Any], roles: tuple[str, ...]) -> float:
    return float(sum(told[role]["cpu_s"] for role in roles))


def main() -> None:
    parse = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parse.add_argument("before", type=Path, help="A checkout of the earlier build, installed in its .venv.")
    parse.add_argument("networks", nargs="+", help="Models by name, or compiled folders.")
    parse.add_argument("--group", type=int, default=16, help="Bundles that this build prepares at once.")
    parse.add_argument("--repeat", type=int, default=7, help="Rounds that count.")
    told = parse.parse_args()
    ways = [
        Way("earlier, alone", True, 1),
        Way("alone", False, 1),
        Way(f"group of {told.group}", False, told.group),
        Way(f"group of {told.group}, silent down", False, told.group, ("silent", "softspoken")),
        Way(f"group of {told.group}, silent OT", False, told.group, ("silent", "silent")),
    ]
    print("| network | bundles | MB each | server, ms | ratio | client, ms | ratio | both, ms | ratio |")
    print("|---|---|---|---|---|---|---|---|---|")
    for network in told.networks:
        measure(network, (told.before / ".venv/bin/python", Path(sys.executable)), ways, told.repeat)


if __name__ == "__main__":
    main()
