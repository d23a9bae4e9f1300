"""`sphynx keys`: an authority of your own, keys for servers and clients, revocation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sphynx.cli.group import VerbGroup
from sphynx.cli.options import Json
from sphynx.cli.output import print_json, print_table
from sphynx.errors import InputError

app = typer.Typer(
    cls=VerbGroup,
    help="Keys: make an authority, issue keys, revoke them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Folder = Annotated[Path, typer.Option("--keys", help="The folder that `sphynx keys init` made.")]


@app.command("init")
def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new folder for the authority and its keys.")],
) -> None:
    """Make an authority. Anyone with its private key can admit clients: keep the folder safe.

    Example:

      sphynx keys init keys
    """
    from sphynx import keys

    typer.echo(str(keys.init(folder)))


@app.command("issue")
def issue(
    name: Annotated[str, typer.Argument(help="Name of the server or client.")],
    hosts: Annotated[
        list[str] | None,
        typer.Option("--server", metavar="HOST", help="A server's keys, for this host name or address. Repeatable."),
    ] = None,
    client: Annotated[bool, typer.Option("--client", help="A client's keys.")] = False,
    folder: Folder = Path("keys"),
    days: Annotated[int, typer.Option("--days", min=1, max=3650, help="Days until the keys expire.")] = 365,
) -> None:
    """Issue keys: a folder to hand over as a whole, through a secure channel.

    Examples:

      sphynx keys issue server --server inference.example --server 10.0.0.7

      sphynx keys issue alice --client --days 90
    """
    from sphynx import keys

    if client == bool(hosts):
        raise InputError(
            "both --server and --client are given" if client else "neither --server nor --client is given",
            where="keys issue",
            remedy="Give --server HOST for the keys of a server, or --client for those of a client.",
        )
    typer.echo(str(keys.issue(folder, name, hosts=hosts or (), days=days)))


@app.command("revoke")
def revoke(
    name: Annotated[
        str | None, typer.Argument(help="Name whose keys to revoke. Without one the list is only signed again.")
    ] = None,
    folder: Folder = Path("keys"),
) -> None:
    """Revoke all keys of a name, or sign the list of revoked keys again. Servers see a new one at the next request.

    A list is valid for 90 days; after that, servers admit nobody. `sphynx keys revoke` without a name signs it again.

    Examples:

      sphynx keys revoke alice

      sphynx keys revoke
    """
    from sphynx import keys

    for place in keys.revoke(folder, name):
        typer.echo(str(place))
    typer.echo("Copy revoked.pem into the key folder of every server that runs elsewhere.", err=True)


@app.command("ls")
def list_keys(folder: Folder = Path("keys"), as_json: Json = False) -> None:
    """List issued keys, when they expire, and whether they are valid, expired or revoked.

    Example:

      sphynx keys ls
    """
    from sphynx import keys

    parties = keys.list_parties(folder)
    if as_json:
        print_json(
            [
                {
                    "name": party.name,
                    "kind": party.kind,
                    "until": party.not_after.date().isoformat(),
                    "expired": party.expired,
                    "revoked": party.revoked,
                    "serial": f"{party.serial:x}",
                }
                for party in parties
            ]
        )
        return
    print_table(
        f"Keys of {folder}",
        ["name", "kind", "until", "state"],
        (
            [
                party.name,
                party.kind,
                party.not_after.date().isoformat(),
                "revoked" if party.revoked else "expired" if party.expired else "valid",
            ]
            for party in parties
        ),
    )
