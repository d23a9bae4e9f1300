"""Keeps finished runs as files under results/, where `make docs` finds them.

python docs/keep_results.py RUN [RUN ...]        a training, cell search or placement search; a folder of runs as well
"""

from __future__ import annotations

import argparse
from pathlib import Path

from sphynx.report.paper.keeping import keep, runs_below

RESULTS = Path(__file__).parents[1] / "results"


def main() -> None:
    parser = argparse.ArgumentParser(description="Keep runs as files under results/.")
    parser.add_argument("runs", nargs="+", type=Path, help="run folders, or folders of run folders")
    parser.add_argument("--to", type=Path, default=RESULTS, help="the folder of results")
    given = parser.parse_args()
    for run in (run for path in given.runs for run in runs_below(path)):
        print(keep(run, given.to))


if __name__ == "__main__":
    main()
