"""Keys: an authority in a folder signs what servers and clients request, where each has made its own.

`authority.py` has the authority, `own_keys.py` a party's side. `issue` and `renew` are all steps at once for parties
that are on the authority's machine. Importing this needs the package `cryptography`; asking with the folders does not.

    >>> sphynx.keys.init("authority-of-mine").name
    'authority'
    >>> request = sphynx.keys.request("keys-of-alice", "alice")
    >>> answer = sphynx.keys.sign("authority-of-mine", "alice", request, client=True)
    >>> sphynx.keys.install("keys-of-alice", "alice", answer) == sphynx.keys.authority_fingerprint("authority-of-mine")
    True
    >>> sphynx.keys.issue("authority-of-mine", "server", hosts=["inference.example"]).name
    'server'
    >>> [(party.name, party.kind) for party in sphynx.keys.list_parties("authority-of-mine")]
    [('alice', 'client'), ('server', 'server')]
"""

from __future__ import annotations

import datetime
import shutil
from collections.abc import Sequence
from pathlib import Path

from sphynx.errors import InputError
from sphynx.service.authority import (
    FOLDER,
    PARTY_DAYS,
    Party,
    alone,
    authority_fingerprint,
    check_name,
    init,
    list_parties,
    read_request,
    revoke,
    sign,
    sign_alone,
)
from sphynx.service.credentials import CERTIFICATE
from sphynx.service.own_keys import install, install_signed, request

__all__ = [
    "PARTY_DAYS",
    "Party",
    "authority_fingerprint",
    "init",
    "install",
    "issue",
    "list_parties",
    "renew",
    "request",
    "revoke",
    "sign",
]


def issue(
    folder: str | Path,
    name: str,
    *,
    hosts: Sequence[str] = (),
    days: int = PARTY_DAYS,
    start: datetime.datetime | None = None,
) -> Path:
    """Request, sign and install keys in the authority's own folder, for a party on this machine: a server if it has
    `hosts`, otherwise a client. Return the party's folder."""
    folder = Path(folder)
    check_name(name)
    home = folder / name
    if home.exists():
        raise InputError(
            "this name already has keys", where=str(home), remedy=f"sphynx keys renew {name}, or another name."
        )
    try:
        with alone(folder):  # a revocation at the same time finds the folder, or has signed the list that is installed
            asked = read_request(request(folder, name), name)
            answer = sign_alone(folder, name, asked, client=not hosts, hosts=hosts, days=days, start=start)
            install_signed(home, answer)
    except BaseException:
        shutil.rmtree(home, ignore_errors=True)
        raise
    return home


def renew(folder: str | Path, name: str, *, days: int = PARTY_DAYS) -> Path:
    """Request a new certificate for the key that a name has. Where the authority is in the same folder, it is signed
    and installed at once, and the party's folder returned; elsewhere the request to send."""
    folder = Path(folder)
    check_name(name)
    home = folder / name
    if not (home / CERTIFICATE).is_file():
        raise InputError(
            "there are no keys to renew", where=str(home), remedy=f"Ask for some: sphynx keys request {name}."
        )
    asked = request(folder, name)
    if not (folder / FOLDER).is_dir():
        return asked
    with alone(folder):
        install_signed(home, sign_alone(folder, name, read_request(asked, name), days=days))
    return home
