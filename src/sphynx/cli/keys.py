"""`sphynx keys`: an authority of your own, keys that stay where they are made, revocation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sphynx.cli.group import Verbs
from sphynx.cli.options import Json
from sphynx.cli.output import print_json, print_table, say_next
from sphynx.errors import InputError

app = Verbs(
    help="Keys: request, sign, renew and revoke them.",
    no_args_is_help=True,
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
    say_next("sphynx", "keys", "issue", "server", "--server", "127.0.0.1", "--keys", str(folder))


Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the server or client.")]
Home = Annotated[Path, typer.Option("--keys", help="The folder that has, or gets, the folder NAME.")]
Hosts = Annotated[
    list[str] | None,
    typer.Option("--server", metavar="HOST", help="Keys of a server, for this host name or address. Repeatable."),
]
IsClient = Annotated[bool, typer.Option("--client", help="Keys of a client.")]
Days = Annotated[int, typer.Option("--days", min=1, max=3650, help="Days until the certificate expires.")]


@app.command("request")
def request(name: Name, folder: Home = Path("keys")) -> None:
    """Make a private key here, where it stays, and a request that the authority signs. Prints the request's file.

    Examples:

      sphynx keys request alice
    """
    from sphynx import keys

    asked = keys.request(folder, name)
    typer.echo(str(asked))
    say_next("sphynx", "keys", "sign", name, str(asked))


@app.command("sign")
def sign(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name that the keys are for.")],
    asked: Annotated[Path, typer.Argument(metavar="REQUEST", help="The file that `sphynx keys request` made.")],
    hosts: Hosts = None,
    client: IsClient = False,
    folder: Folder = Path("keys"),
    days: Days = 90,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Where to write the answer. [default: NAME.signed.pem beside it]")
    ] = None,
) -> None:
    """Sign a request at the authority, and print the file to send back. Neither file is secret.

    Without --client and --server only keys that the name already has are renewed.

    Examples:

      sphynx keys sign alice request.pem --client --days 30

      sphynx keys sign server request.pem --server inference.example --server 10.0.0.7

      sphynx keys sign alice request.pem
    """
    from sphynx import keys

    signed = keys.sign(folder, name, asked, client=client, hosts=hosts or (), days=days, out=out)
    typer.echo(str(signed))
    typer.echo(f"authority {keys.authority_fingerprint(folder)}", err=True)
    say_next("sphynx", "keys", "install", name, str(signed))


@app.command("install")
def install(
    name: Name,
    answer: Annotated[Path, typer.Argument(metavar="ANSWER", help="The file that `sphynx keys sign` made.")],
    folder: Home = Path("keys"),
) -> None:
    """Put the authority's answer beside the key. Servers and clients that run notice by themselves.

    Prints the authority's fingerprint: the first time, compare it with what `sphynx keys sign` printed there.

    Examples:

      sphynx keys install alice alice.signed.pem
    """
    from sphynx import keys

    typer.echo(f"authority {keys.install(folder, name, answer)}")


@app.command("renew")
def renew(name: Name, folder: Home = Path("keys"), days: Days = 90) -> None:
    """Renew a certificate, for the same key. On the authority's machine it is done then; elsewhere sign the request
    that this prints and install the answer, as for new keys.

    Examples:

      sphynx keys renew alice
    """
    from sphynx import keys

    typer.echo(str(keys.renew(folder, name, days=days)))


@app.command("issue")
def issue(
    name: Name,
    hosts: Hosts = None,
    client: IsClient = False,
    folder: Folder = Path("keys"),
    days: Days = 90,
) -> None:
    """Request, sign and install keys at once, for a server or client on this machine.

    Examples:

      sphynx keys issue server --server inference.example --server 10.0.0.7

      sphynx keys issue alice --client --days 30
    """
    from sphynx import keys

    if client == bool(hosts):
        raise InputError(
            "both --server and --client are given" if client else "neither --server nor --client is given",
            where="keys issue",
            remedy="Give --server HOST for the keys of a server, or --client for those of a client.",
        )
    made = keys.issue(folder, name, hosts=hosts or (), days=days)
    typer.echo(str(made))
    say_next("sphynx", *(("infer", "PICTURE") if client else ("serve", "COMPILED")), "--keys", str(made))


@app.command("revoke")
def revoke(
    name: Annotated[
        str | None, typer.Argument(help="Name whose keys to revoke; without a name, the list is only signed again.")
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
