"""How far a client is trusted, and which backends protect against which. One table: what is not in it is refused.

semi-honest        both parties run the protocol; each may look at all that it receives
malicious-client   the client may run anything (docs/security/malicious-client.md)
"""

from __future__ import annotations

from typing import Literal, get_args

from sphynx.errors import InputError
from sphynx.program.backends import Backend

Security = Literal["semi-honest", "malicious-client"]
SECURITIES: tuple[Security, ...] = get_args(Security)
MODES: dict[tuple[Security, Backend], str] = {
    ("semi-honest", "gc"): "",
    ("semi-honest", "gmw"): "",
    ("malicious-client", "gc"): "",
    ("malicious-client", "gmw"): "gmw shares are not authenticated: a client could change them",
}


def require_mode(security: str, backend: Backend, *, where: str) -> Security:
    """Refuse an unknown name, and a backend that does not protect so."""
    for known in SECURITIES:
        if known != security:
            continue
        if refusal := MODES[known, backend]:
            what = f"{security} needs garbled circuits: {refusal}"
            raise InputError(what, where=where, remedy="Choose the backend gc.")
        return known
    raise InputError(
        f"{security!r} is not a kind of security", where=where, remedy=f"Choose {' or '.join(SECURITIES)}."
    )
