"""Faults at every message of both phases: `make chaos`, or `python -m tests.chaos --minutes 5 --seed 1`.

Prints a table: for each fault and place how many points were tried, after how many of them the next inference was
right (`survived`), how many inferences the fault itself cost (`lost`), and what must be 0: wrong answers, bundles used
twice, errors that are not Sphynx's own. Exit code 1 if one of these is not 0, or somebody did not survive.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

from sphynx.service import signing
from tests.chaos.parties import become_nobody
from tests.chaos.points import all_points
from tests.chaos.world import Outcome, Point, World
from tests.service.authority import make_authority

MAY_END_ANYHOW = {"no memory"}  # where there is no memory, there is none to say so with
COLUMNS = ("points", "survived", "lost", "wrong", "restarts", "unforeseen")


@dataclass
class Row:
    points: int = 0
    survived: int = 0
    lost: int = 0
    wrong: int = 0
    restarts: int = 0
    unforeseen: int = 0

    def add(self, outcome: Outcome, *, counts_unforeseen: bool) -> None:
        self.points += 1
        self.survived += outcome.attempts > 0
        self.lost += not outcome.has_answered
        self.wrong += outcome.wrong
        self.restarts += outcome.restarts
        self.unforeseen += counts_unforeseen and bool(outcome.unforeseen)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--points", type=int, default=1 << 30, help="at most")
    parser.add_argument("--seed", type=int, default=0, help="of the order of the points")
    parser.add_argument("--each", type=int, default=1 << 30, help="points of every fault at most")
    parser.add_argument("--only", default="", help="faults whose name has this in it")
    parser.add_argument("--verbose", action="store_true", help="a line for every point that did not go as it should")
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="sphynx-chaos-", dir=in_memory()))
    try:
        sys.exit(run(folder, asked))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def in_memory() -> str | None:
    """A folder in memory, if there is one: a killed process has written there as on any disk, and a slow disk costs
    points."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def run(folder: Path, asked: argparse.Namespace) -> int:
    signing.LIST_DAYS = 365  # beyond the clock's jumps: by an overdue list a server rightly serves nobody
    authority = make_authority(folder / "keys")
    worlds = [World(folder / backend, authority, backend) for backend in ("gc", "gmw")]
    for world in worlds:
        (folder / world.backend).mkdir()
    become_nobody(folder)
    for world in worlds:
        world.count()  # the first time takes another course: the folders are made
    todo = {world.backend: all_points(world.count(), asked.seed) for world in worlds}
    queue = [(world, point) for world in worlds for point in todo[world.backend] if asked.only in point.blow.fault]
    queue = _first_of_each([queue[at] for at in _interleaved(len(queue))], asked.each)[: asked.points]
    rows: dict[tuple[str, str], Row] = defaultdict(Row)
    start_s, missed = time.monotonic(), 0
    for world, point in queue:
        if time.monotonic() - start_s > 60 * asked.minutes:
            break
        reused_before = world.reused
        outcome = world.try_point(point)
        if not outcome.is_struck:
            missed += 1
            continue
        is_counted = point.blow.fault not in MAY_END_ANYHOW
        rows[point.blow.fault, point.place].add(outcome, counts_unforeseen=is_counted)
        if asked.verbose and (_is_bad(outcome) or world.reused > reused_before):
            print(f"{world.backend} {point}: {outcome}, reused {world.reused - reused_before}", flush=True)
    return show(rows, worlds, missed, len(queue), time.monotonic() - start_s)


def _interleaved(count: int) -> list[int]:
    """The first half's and the second half's numbers in turn: both backends get the same part of the time."""
    half = (count + 1) // 2
    return [at for pair in zip(range(half), range(half, 2 * half), strict=True) for at in pair if at < count]


def _first_of_each(queue: list[tuple[World, Point]], count: int) -> list[tuple[World, Point]]:
    seen: Counter[str] = Counter()
    found = []
    for world, point in queue:
        seen[point.blow.fault] += 1
        found += [(world, point)] if seen[point.blow.fault] <= count else []
    return found


def _is_bad(outcome: Outcome) -> bool:
    return bool(outcome.wrong or outcome.unforeseen or not outcome.attempts)


def show(rows: dict[tuple[str, str], Row], worlds: list[World], missed: int, of: int, seconds: float) -> int:
    total = Row()
    print(f"{'fault':16}{'place':14}" + "".join(f"{name:>12}" for name in COLUMNS))
    for (fault, place), row in sorted(rows.items()):
        print(f"{fault:16}{place:14}" + "".join(f"{getattr(row, name):12,}" for name in COLUMNS))
        for name in COLUMNS:
            setattr(total, name, getattr(total, name) + getattr(row, name))
    print(f"{'all':30}" + "".join(f"{getattr(total, name):12,}" for name in COLUMNS))
    reused, used = sum(world.reused for world in worlds), sum(len(world.used) // 2 for world in worlds)
    print(
        f"bundles reused: {reused} of {used:,} halves used. {total.points:,} of {of:,} points tried in {seconds:.0f} s;"
        f" {missed:,} more never came about, because the run took another course."
    )
    is_good = total.survived == total.points and not (total.wrong or total.unforeseen or reused)
    return 0 if is_good else 1


if __name__ == "__main__":
    main()
