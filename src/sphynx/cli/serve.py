"""`sphynx serve`: private inference for clients with keys."""

from __future__ import annotations

import sys
from dataclasses import asdict, replace
from typing import Annotated, TextIO, cast

import typer

from sphynx.cli.event_lines import EventLines
from sphynx.cli.options import Json
from sphynx.cli.output import print_json, print_table
from sphynx.cli.record_flags import with_record_flags
from sphynx.cli.wording import with_flags
from sphynx.service.settings import Limits, ServerSettings


@with_record_flags
def serve(
    context: typer.Context,
    compiled: Annotated[
        list[str],
        typer.Argument(metavar="DIR...", help="Folders made by `sphynx compile`, or models' names."),
    ],
    check: Annotated[
        bool, typer.Option("--check", help="Look at all that it needs, without starting it or changing anything.")
    ] = False,
    as_json: Json = False,
    *,
    settings: ServerSettings,
    limits: Limits,
) -> None:
    """Serve a compiled program. Ctrl-C lets running inferences finish.

    The log on stderr has one readable line per event in a terminal, and one JSON object per line elsewhere.

    Examples:

      sphynx serve compiled/digits --keys keys/server

      sphynx serve sphynx-cifar100-25k --keys keys/server

      sphynx serve compiled/digits --keys keys/server --listen 0.0.0.0:7443 --workers 8 --quota 100G --pool 64

      sphynx serve compiled/digits --keys keys/server --processes 8

      sphynx serve compiled/digits --keys keys/server --check

      sphynx serve compiled/digits compiled/cats --keys keys/server --state state
    """
    from sphynx.api.serving import Server

    limits = replace(limits, queue_s=limits.message_s / 2)
    to_people = sys.stderr is not None and sys.stderr.isatty() and settings.processes == 1
    log = cast(TextIO, EventLines(sys.stderr)) if to_people else sys.stderr
    server = Server(compiled, **vars(replace(settings, limits=limits, log=log)))
    if not check:
        server.serve()
        return
    found = server.check()
    if as_json:
        print_json([asdict(one) for one in found])
    else:
        rows = [[one.part, "yes" if one.is_well else "NO", one.what, with_flags(one.remedy, context)] for one in found]
        print_table("What the server needs", ["part", "well", "what", "remedy"], rows)
    if not all(one.is_well for one in found):
        raise typer.Exit(1)
