"""python -m tests.fuzz_networks [--networks N] [--seed S] [--processes P] [--out FOLDER]

Draws random small networks, compiles each by three readers and judges it by torch (trial.py). What was found is kept in
FOLDER as it is found; the same command with the same seed goes on there. Ends with 1 where the compiler got a network
wrong, or compiled fewer than nine of ten.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from tests.fuzz_networks.report import LEAST_COMPILED, compiled_share, errors_of, lines, to_json
from tests.fuzz_networks.trial import Outcome, attempt_all, begin_worker

CHUNK = 20  # networks that a process is given at a time
TASKS = 25  # chunks that a process lives for, about: what torch keeps of old networks goes with it


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--networks", type=int, default=1000)
    arguments.add_argument("--seed", type=int, default=None, help="of the first network; default: by the clock")
    arguments.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    arguments.add_argument("--out", type=Path, default=Path("out/fuzz-networks"))
    given = arguments.parse_args()
    first = int(time.time()) % 1_000_000 * 1_000_000 if given.seed is None else given.seed
    given.out.mkdir(parents=True, exist_ok=True)
    file = given.out / f"{first}.jsonl"
    print(f"networks of seeds {first} to {first + given.networks - 1}; found so far: {file}", flush=True)
    outcomes = _kept(file)
    known = {found.seed for found in outcomes}
    seeds = [seed for seed in range(first, first + given.networks) if seed not in known]
    with file.open("a") as kept:
        for found in _tried(seeds, given.processes):
            outcomes += found
            kept.writelines(json.dumps(vars(each)) + "\n" for each in found)
            kept.flush()
            done, errors = len({each.seed for each in outcomes}), errors_of(outcomes)
            print(
                f"{done:,} of {given.networks:,}, {len(errors)} errors, {compiled_share(outcomes):.1%} compiled",
                flush=True,
            )
    print(*lines(outcomes), sep="\n")
    (given.out / f"{first}.json").write_text(json.dumps(to_json(outcomes), indent=2) + "\n")
    return int(bool(errors_of(outcomes)) or compiled_share(outcomes) < LEAST_COMPILED)


def _kept(file: Path) -> list[Outcome]:
    """Read the results of whole chunks; a line that was cut off is tried again."""
    found = []
    for line in file.read_text().splitlines() if file.exists() else ():
        try:
            found.append(Outcome(**json.loads(line)))
        except ValueError:
            continue
    return found


def _tried(seeds: list[int], processes: int) -> Iterator[list[Outcome]]:
    chunks = [seeds[start : start + CHUNK] for start in range(0, len(seeds), CHUNK)]
    context = multiprocessing.get_context("spawn")  # torch's threads do not survive a fork
    # Pools one after the other, not max_tasks_per_child: a pool whose processes all end at once waits forever.
    for start in range(0, len(chunks), TASKS * processes):
        with ProcessPoolExecutor(processes, context, begin_worker) as pool:
            together = chunks[start : start + TASKS * processes]
            for done in as_completed([pool.submit(attempt_all, chunk) for chunk in together]):
                yield done.result()


if __name__ == "__main__":
    sys.exit(main())
