"""python -m tests.fuzz [TARGET ..] [--seconds N]: searches each parser in turn, or those named.

With atheris (libFuzzer for Python) where it is installed, else with the search of search.py. An input that is neither
used nor refused is written to out/fuzz and ends the run with 1: fix the parser, and keep the input in corpus/TARGET.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import subprocess
import sys
import time
import traceback
from pathlib import Path

FOUND = Path("out/fuzz")


def main() -> int:
    from tests.fuzz.targets import TARGETS

    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    arguments.add_argument("--seconds", type=float, default=60.0, help="for each target")
    arguments.add_argument("--engine", choices=("atheris", "search"), default=None, help="default: what is installed")
    given = arguments.parse_args()
    engine = given.engine or ("atheris" if importlib.util.find_spec("atheris") else "search")
    FOUND.mkdir(parents=True, exist_ok=True)
    failed = False
    for name in given.targets or TARGETS:
        run = _by_atheris if engine == "atheris" else _by_search
        failed |= not run(name, given.seconds)
    return int(failed)


def _by_search(name: str, seconds: float) -> bool:
    from tests.fuzz.search import FoundError, search
    from tests.fuzz.targets import TARGETS

    try:
        found = search(TARGETS[name], seed=int(time.time()), executions=sys.maxsize, seconds=seconds)
    except FoundError as error:
        file = FOUND / f"{name}-{hashlib.sha256(error.data).hexdigest()[:16]}"
        file.write_bytes(error.data)
        traceback.print_exception(error.__cause__)
        print(f"{name}: the input is in {file}", file=sys.stderr)
        return False
    print(f"{name}: {found.executions:,} executions, {found.used:,} used, {found.lines:,} lines of Sphynx reached")
    return True


def _by_atheris(name: str, seconds: float) -> bool:
    """In a process of its own: libFuzzer ends the process that it runs in."""
    kept = FOUND / f"corpus-{name}"
    kept.mkdir(exist_ok=True)
    flags = [
        f"-max_total_time={round(seconds)}",
        f"-artifact_prefix={FOUND}/{name}-",
        "-print_final_stats=1",
        "-verbosity=0",
    ]
    return subprocess.run([sys.executable, "-m", "tests.fuzz.by_atheris", name, *flags, str(kept)]).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
