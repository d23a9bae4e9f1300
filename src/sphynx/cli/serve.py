"""`sphynx serve`: private inference for clients with keys."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Annotated

import typer

from sphynx.cli.record_flags import with_record_flags
from sphynx.service.settings import Limits, ServerSettings


@with_record_flags
def serve(
    compiled: Annotated[
        str, typer.Argument(metavar="DIR", help="A folder made by `sphynx compile`, or a model's name.")
    ],
    settings: ServerSettings,
    limits: Limits,
) -> None:
    """Serve a compiled program. Logs one JSON object per line on stderr; Ctrl-C lets running inferences finish.

    Examples:

      sphynx serve compiled/digits --keys keys/server

      sphynx serve sphynx-cifar100-25k --keys keys/server

      sphynx serve compiled/digits --keys keys/server --listen 0.0.0.0:7443 --workers 8 --quota 100G --pool 64

      sphynx serve compiled/digits --keys keys/server --processes 8
    """
    from sphynx.api.serving import Server

    limits = replace(limits, queue_s=limits.message_s / 2)
    Server(compiled, **vars(replace(settings, limits=limits, log=sys.stderr))).serve()
