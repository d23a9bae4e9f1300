"""`sphynx search`: cells for a data set, places of reduce cells, ReLUs of a stream's blocks."""

from __future__ import annotations

import typer

from sphynx.cli import search_cells, search_placement, search_relus
from sphynx.cli.group import VerbGroup

app = typer.Typer(
    cls=VerbGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Search for cells, for the places of reduce cells, or for the ReLUs of a stream's blocks.",
)
app.command("cells")(search_cells.search_cells)
app.command("placement")(search_placement.search_placement)
app.command("relus")(search_relus.search_relus)
