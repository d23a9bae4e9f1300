"""`sphynx reproduce`: the paper's tables, the paper's value beside ours."""

from __future__ import annotations

from typing import Annotated

import typer

from sphynx.cli import design_options as opt
from sphynx.cli.output import count, print_json, print_table
from sphynx.errors import InputError

TABLES = ("relu-counts", "parameters")


def reproduce(
    name: Annotated[str, typer.Argument(help=f"Which table: {', '.join(TABLES)}.")],
    as_json: opt.Json = False,
) -> None:
    """Make a table of the paper again: its printed values beside ours, and where they disagree, why.

    Examples:

      sphynx reproduce relu-counts

      sphynx reproduce parameters --json
    """
    from sphynx.report.paper_tables import parameter_rows, relu_count_rows

    if name not in TABLES:
        raise InputError(f"no table is called {name!r}", remedy=f"Use one of {', '.join(TABLES)}.")
    rows = relu_count_rows() if name == "relu-counts" else parameter_rows()
    if as_json:
        print_json([{**vars(row), "agrees": row.agrees, "verdict": row.verdict} for row in rows])
        return
    unit = "ReLUs" if name == "relu-counts" else "parameters"
    for table in dict.fromkeys(row.table for row in rows):
        print_table(
            table,
            ["network", ">paper", f">our {unit}", "verdict", "note"],
            ([row.network, row.printed, count(row.ours), row.verdict, row.note] for row in rows if row.table == table),
        )
    agreeing = sum(row.agrees for row in rows)
    rest = "." if agreeing == len(rows) else "; the note of each other row says why it does not."
    typer.echo(f"{agreeing} of {len(rows)} rows agree to the printed digit{rest}")
