"""The modes in which a program is served, in two tables: what is not in them is refused.

How far a client is trusted, and which backends protect against which:

    semi-honest        both parties run the protocol; each may look at all that it receives
    malicious-client   the client may run anything (docs/security/malicious-client.md)

What a client gets, and of which programs (program/labels.py); every kind of security and every input goes with either:

    logits   all numbers of all outputs
    label    the class of the largest score alone
"""

from __future__ import annotations

import math
from typing import Literal, get_args

from sphynx.errors import InputError
from sphynx.program.backends import BACKENDS, Backend

Security = Literal["semi-honest", "malicious-client"]
Reveal = Literal["logits", "label"]
AnswerKind = Literal["classes", "findings", "numbers", "several"]  # what a program answers with
SECURITIES: tuple[Security, ...] = get_args(Security)  # each offers what those before it do, and more
MODES: dict[tuple[Security, Backend], str] = {
    ("semi-honest", "gc"): "",
    ("semi-honest", "gmw"): "",
    ("malicious-client", "gc"): "",
    ("malicious-client", "gmw"): "gmw shares are not authenticated: a client could change them",
}

REVEALS: tuple[Reveal, ...] = get_args(Reveal)
ANSWER_KINDS: tuple[AnswerKind, ...] = get_args(AnswerKind)
REVEALED: dict[tuple[Reveal, AnswerKind], str] = {
    ("logits", "classes"): "",
    ("logits", "findings"): "",
    ("logits", "numbers"): "",
    ("logits", "several"): "",
    ("label", "classes"): "",
    ("label", "findings"): "several of its classes may hold at once, so that none is the label",
    ("label", "numbers"): "its numbers are not scores of classes, so that none is the label",
    ("label", "several"): "it has several outputs, and a label stands for one",
}


def require_reveal(name: str, margin: float = 0.0) -> Reveal:
    """Refuse an unknown name, and a margin that is none or does not go with it."""
    if name not in REVEALS:
        what = f"{name!r} is not what can be revealed"
        raise InputError(what, where="`reveal`", remedy=f"Choose {' or '.join(REVEALS)}.")
    if not math.isfinite(margin) or margin < 0:
        raise InputError(f"{margin} is not a margin", where="`margin`", remedy="Give 0 or more.")
    if margin and name != "label":
        raise InputError(
            "a margin is for labels: with the logits a client sees by how much one leads",
            where="`margin`",
            remedy="Set `reveal` to label, or leave the margin out.",
        )
    return "label" if name == "label" else "logits"


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
