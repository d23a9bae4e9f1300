"""`sphynx serve`: private inference for clients with keys."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from sphynx.cli.settings_flags import with_settings
from sphynx.service.settings import Limits, ServerSettings


@with_settings(ServerSettings, Limits)
def serve(
    compiled: Annotated[
        str, typer.Argument(metavar="DIR", help="A folder made by `sphynx compile`, or a model's name.")
    ],
    settings: dict[str, Any],
    limits: dict[str, Any],
) -> None:
    """Serve a compiled program. Logs one JSON object per line on stderr; Ctrl-C lets running inferences finish.

    Examples:

      sphynx serve compiled/digits --keys keys/server

      sphynx serve sphynx-cifar100-25k --keys keys/server

      sphynx serve compiled/digits --keys keys/server --listen 0.0.0.0:7443 --workers 8 --quota 100G --pool 64

      sphynx serve compiled/digits --keys keys/server --processes 8
    """
    from sphynx.api.serving import Server

    given = {name: value for name, value in limits.items() if value is not None}
    allowed = Limits(**given, queue_s=limits["message_s"] / 2)
    Server(compiled, **settings, limits=allowed, log=sys.stderr).serve()
