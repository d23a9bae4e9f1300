"""Output of verbs: tables for people or JSON for programs on stdout; everything else goes to stderr."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from sphynx.program.ir import Program

NAME_WIDTH = 24
WIDE = 10_000


def print_json(value: Any) -> None:
    sys.stdout.write(json.dumps(value, indent=2) + "\n")  # at once: json.dump would write it in millions of pieces


def print_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], *, note: str = "", width: int | None = None
) -> None:
    """Print a table on stdout, no wider than a terminal nor than `width`. A column whose name begins with '>' is
    aligned to the right; one whose cells are all empty is left out. Title and note take all of that width.
    Texts are printed as they are: names may come from a server or files, and rich would take '[dog]' for a style and
    '[link=...]' for a link."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table, rows = Table(show_header=any(columns)), list(rows)
    kept = [number for number in range(len(columns)) if not rows or any(row[number] for row in rows)]
    columns, rows = [columns[number] for number in kept], [[row[number] for number in kept] for row in rows]
    whole = min(max((len(row[0]) for row in rows), default=0), NAME_WIDTH)  # names are looked for, so keep them whole
    for number, column in enumerate(columns):
        right = column.startswith(">")
        justify: Literal["left", "right"] = "right" if right else "left"
        least = 0 if number else whole
        table.add_column(column.removeprefix(">"), justify=justify, overflow="fold", min_width=least)
    for row in rows:
        table.add_row(*map(Text, row))
    # Piped output keeps its lines whole: a program or a pager reads it, not a narrow screen.
    console = Console(width=None if sys.stdout.isatty() else width or 160)
    console = Console(width=min(console.width, width or console.width))
    if table.columns and console.measure(table, options=console.options.update_width(WIDE)).maximum > console.width:
        # A name that is wider than its share is folded. Rich would keep its least width and cut other columns off.
        others = sum(map(_least_width, columns[1:], list(zip(*rows, strict=True))[1:]))
        rest = console.width - others - (3 * len(columns) + 1)
        table.columns[0].width = min(whole, max(rest, NAME_WIDTH // 3))
    console.print(Text(title, "bold"))
    console.print(table)
    if note:
        console.print(Text(note, "dim"))


def _least_width(column: str, cells: Sequence[str]) -> int:
    """Return what a column needs where its heading is folded between words, and so are its cells, but for numbers."""
    words = column.removeprefix(">").split()
    words += cells if column.startswith(">") else [word for cell in cells for word in cell.split()]
    return max(map(len, words), default=0)


def say_next(*words: str) -> None:
    """Tell a person in a terminal which command usually comes next."""
    if sys.stderr is not None and sys.stderr.isatty():
        sys.stdout.flush()
        sys.stderr.write(f"Next: {shlex.join([called_as(), *words[1:]])}\n")


def called_as() -> str:
    """Return what starts this program from here: its path where the shell would not find it, as in a new clone."""
    found = shutil.which("sphynx") or Path(sys.argv[0]).name != "sphynx"
    return "sphynx" if found else sys.argv[0]


def count(value: int) -> str:
    """12,345"""
    return f"{value:,}"


def nonlinear_text(program: Program) -> str:
    """Comparisons of max pools apart from ReLUs."""
    comparisons = program.comparison_count
    return f"{count(program.relu_count)} ReLUs" + (f", {count(comparisons)} comparisons" if comparisons else "")


def range_text(program: Program, name: str, range_bits: int) -> str:
    """Links of chains and parts of sums have no range: they may wrap around the ring."""
    return str(range_bits) if range_bits else "chain" if name in program.links else "sum"
