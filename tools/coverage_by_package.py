"""Adds up the JSON of coverage.py by package: `python -m tools.coverage_by_package FILES -o packages.json`."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from sphynx.bench.machine import describe_machine
from sphynx.run.environment import describe_environment
from tools.command import run

SOURCE = PurePosixPath("src/sphynx")
OWN = "(its own files)"


def coverage_by_package(
    report: Annotated[Path, typer.Argument(help="What `coverage json` wrote.", exists=True, dir_okay=False)],
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Keep the sums here.")] = None,
) -> None:
    """Sum the lines that are statements, and those of them that ran, over each package of src/sphynx."""
    packages = by_package(json.loads(report.read_text()))
    statements, ran = (sum(of[key] for of in packages.values()) for key in ("statements", "ran"))
    table = Table("package", "statements", "ran", "%", title=f"{100 * ran / statements:.1f} % of {statements:,}")
    for name, of in packages.items():
        table.add_row(name, f"{of['statements']:,}", f"{of['ran']:,}", f"{100 * of['ran'] / of['statements']:.1f}")
    Console().print(table)
    if out is not None:
        environment = describe_environment()
        kept = {
            "packages": packages,
            "machine": describe_machine().to_json(),
            "commit": environment["commit"],
        }
        out.write_text(json.dumps(kept, indent=1) + "\n")


def by_package(report: dict[str, Any]) -> dict[str, dict[str, int]]:
    sums: dict[str, dict[str, int]] = defaultdict(lambda: {"statements": 0, "ran": 0})
    for file, found in report["files"].items():
        parts = PurePosixPath(file).relative_to(SOURCE).parts
        package = sums[parts[0] if len(parts) > 1 else OWN]
        package["statements"] += found["summary"]["num_statements"]
        package["ran"] += found["summary"]["covered_lines"]
    return dict(sorted(sums.items()))


if __name__ == "__main__":
    run(coverage_by_package)
