"""`sphynx search`: cells for a data set, places of reduce cells, ReLUs of a stream's blocks."""

from __future__ import annotations

from sphynx.cli import search_cells, search_placement, search_relus
from sphynx.cli.group import Verbs

app = Verbs(
    no_args_is_help=True,
    help="Search for cells, for the places of reduce cells, or for the ReLUs of a stream's blocks.",
)
app.command("cells")(search_cells.search_cells)
app.command("placement")(search_placement.search_placement)
app.command("relus")(search_relus.search_relus)
