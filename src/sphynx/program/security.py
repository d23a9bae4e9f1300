"""How far a client is trusted, and which backends protect against which. One table: what is not in it is refused.

semi-honest        both parties run the protocol; each may look at all that it receives
malicious-client   the client may run anything (docs/security/malicious-client.md)
"""

from __future__ import annotations

from typing import Literal, get_args

from sphynx.errors import InputError
from sphynx.program.backends import BACKENDS, Backend

Security = Literal["semi-honest", "malicious-client"]
SECURITIES: tuple[Security, ...] = get_args(Security)  # each offers what those before it do, and more
MODES: dict[tuple[Security, Backend], str] = {
    ("semi-honest", "gc"): "",
    ("semi-honest", "gmw"): "",
    ("malicious-client", "gc"): "",
    ("malicious-client", "gmw"): "gmw shares are not authenticated: a client could change them",
}


def check_security(name: str, *, where: str) -> Security:
    """Refuse an unknown name; `where` is the argument that it was given as."""
    for known in SECURITIES:
        if known == name:
            return known
    raise InputError(f"{name!r} is not a kind of security", where=where, remedy=f"Choose {' or '.join(SECURITIES)}.")


def require_mode(security: str, backend: Backend, *, where: str) -> Security:
    """Refuse an unknown name, and a backend that does not protect so."""
    known = check_security(security, where=where)
    if refusal := MODES[known, backend]:
        what = f"{security} needs garbled circuits: {refusal}"
        raise InputError(what, where=where, remedy="Choose the backend gc.")
    return known


def backends_of(security: Security) -> tuple[Backend, ...]:
    """List the backends that offer this security."""
    return tuple(backend for backend in BACKENDS if not MODES[security, backend])


def offers(security: Security, demanded: Security) -> bool:
    """Return whether a kind of security offers what is demanded, or more."""
    return SECURITIES.index(security) >= SECURITIES.index(demanded)
