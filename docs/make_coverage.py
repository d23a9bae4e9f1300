"""Prints docs/results/coverage.md: which lines of Python the tests run, by package.

python docs/make_coverage.py > docs/results/coverage.md        (or: make docs)
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

KEPT = Path(__file__).parents[1] / "results" / "coverage" / "packages.json"

HEADER = """# Coverage

Of the statements in each package of `src/sphynx`, those that at least one test runs, slow ones among them, in the
processes that tests start as well, except in those that they kill. Not counted: C++ (its tests run under sanitizers,
and every public function of the core is called from Python's), and what needs a GPU or several machines.

    make coverage && cp out/coverage/packages.json results/coverage/packages.json && make docs

`out/coverage/files.txt` then has each file.
"""


def page(kept: dict[str, Any] | None) -> str:
    if kept is None:
        return f"{HEADER}\nIt has not been measured yet.\n"
    packages, machine = kept["packages"], kept["machine"]
    everything = {key: sum(of[key] for of in packages.values()) for key in ("statements", "ran")}
    lines = [
        HEADER,
        f"Measured at commit {kept['commit']}, {machine['architecture']}, {machine['cores']} cores, Python "
        f"{machine['versions']['python']}.",
        "",
        "| package | statements | run | % |",
        "|---|---|---|---|",
        *(_line(name, of) for name, of in packages.items()),
        _line("**all**", everything),
    ]
    return "\n".join(lines) + "\n"


def _line(name: str, of: dict[str, int]) -> str:
    return f"| {name} | {of['statements']:,} | {of['ran']:,} | {100 * of['ran'] / of['statements']:.1f} |"


if __name__ == "__main__":
    print(page(json.loads(KEPT.read_text()) if KEPT.is_file() else None), end="")
