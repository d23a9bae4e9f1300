"""`sphynx app`: a local page that asks about pictures privately, and shows what the server received of them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sphynx.cli.wording import with_flags
from sphynx.errors import InputError
from sphynx.program.backends import Backend

if TYPE_CHECKING:
    from sphynx.app.parties import Parties
    from sphynx.app.watch import Watch

USUAL_MODEL = "stream-cifar100-25k"


def app(
    context: typer.Context,
    local: Annotated[
        list[str] | None,
        typer.Option(
            "--local",
            metavar="MODEL",
            help=f"Run both parties here: a compiled folder or a model ({USUAL_MODEL}). Repeatable.",
        ),
    ] = None,
    server: Annotated[
        str, typer.Option("--server", metavar="HOST:PORT", help="A server elsewhere; needs --keys.")
    ] = "",
    keys: Annotated[Path | None, typer.Option("--keys", help="Your folder of keys.")] = None,
    state: Annotated[
        Path | None, typer.Option("--state", help="Where to keep your bundles. [default: KEYS/bundles]")
    ] = None,
    backend: Annotated[
        Backend,
        typer.Option(
            "--backend", help="The backend to start with: gmw (few bytes) or gc (few rounds). The page can change it."
        ),
    ] = "gmw",
    ready: Annotated[int, typer.Option("--ready", min=0, max=16, help="Bundles to keep ready.")] = 2,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port of the page on 127.0.0.1; 0 picks a free one.")
    ] = 0,
    unsure_below: Annotated[
        float,
        typer.Option("--unsure-below", min=0, max=1, help="Call an answer unsure whose probability is lower."),
    ] = 0.5,
    in_browser: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
) -> None:
    """Open a page on this machine: drop a picture, get a private answer, see what the server received.

    The page's address holds a secret token; whoever has it can ask. Press Ctrl-C to stop.

    Examples:

      sphynx app --open

      sphynx app --local sphynx-cifar100-25k --local compiled/digits

      sphynx app --server inference.example:7443 --keys keys/alice
    """
    if bool(server) != (keys is not None) or (server and local):
        raise InputError(
            "the page asks either a server, with keys, or a network on this machine",
            where="--server, --keys, --local",
            remedy="Give --server HOST:PORT with --keys DIR, or --local MODEL, or neither.",
        )
    from sphynx.app.opening import run_page

    def tell(line: str) -> None:
        typer.echo(with_flags(line, context), err=True)

    models = local or [USUAL_MODEL]
    networks = (
        [partial(_elsewhere, server, keys, state, tell)] if keys else [partial(_here, name, tell) for name in models]
    )
    run_page(
        networks,
        backend=backend,
        ready=ready,
        port=port,
        in_browser=in_browser,
        unsure_below=unsure_below,
        tell_address=typer.echo,
        tell=tell,
    )


def _elsewhere(
    server: str, keys: Path, state: Path | None, tell: Callable[[str], None], watch: Watch
) -> AbstractContextManager[Parties]:
    from sphynx.app.parties import elsewhere

    return elsewhere(server, keys, state, watch, tell)


def _here(model: str, tell: Callable[[str], None], watch: Watch) -> AbstractContextManager[Parties]:
    from sphynx.app.parties import here

    tell(f"starting a server for {model}, which takes some seconds")
    return here(model, watch, tell)
