"""Which part a certificate's holder may play: what OpenSSL leaves open. Standard library only.

OpenSSL refuses a certificate whose extended key usage (RFC 5280, 4.2.1.12) names other purposes, and takes one without
any for both a client's and a server's. Here a purpose has to be named. Signatures, times and lists of revoked
certificates are OpenSSL's to check, before this is asked.
"""

from __future__ import annotations

import ssl
from enum import Enum
from pathlib import Path

from sphynx.service import der

_USAGE, _HOSTS = bytes((0x55, 0x1D, 0x25)), bytes((0x55, 0x1D, 0x11))  # 2.5.29.37 and 2.5.29.17
_EXTENSIONS = 0xA3


class Role(Enum):
    """A certificate's purpose, by the last number of 1.3.6.1.5.5.7.3.x."""

    SERVER = 1
    CLIENT = 2

    @property
    def purpose(self) -> bytes:
        return bytes((0x2B, 6, 1, 5, 5, 7, 3, self.value))


def why_not(certificate: bytes, role: Role) -> str:
    """Say why a certificate (DER) is not one of this role; empty if it is."""
    whose = role.name.lower()
    try:
        found = list(_extensions(memoryview(certificate)))
        usages = [content for which, content in found if which == _USAGE]
        purposes = {bytes(purpose) for usage in usages for _, purpose in der.elements(der.first(usage))}
    except ValueError as error:
        return f"the {whose}'s certificate cannot be read ({error})"
    if len(usages) != 1 or role.purpose not in purposes:
        return f"the certificate is not marked as a {whose}'s (extended key usage)"
    if role is Role.SERVER and not any(which == _HOSTS for which, _ in found):
        return "the server's certificate names no host"
    return ""


def why_not_file(path: Path, role: Role) -> str:
    """Apply `why_not` to the first certificate of a PEM file that OpenSSL has loaded."""
    return why_not(_first_of(path.read_text()), role)


def subject_of(pem: str) -> bytes:
    """Return whom the first certificate of a file is for, as it is encoded there; a ValueError if there is none."""
    signed = der.first(der.first(memoryview(_first_of(pem))))
    sequences = [content for tag, content in der.elements(signed) if tag == der.SEQUENCE]
    if len(sequences) < 4:  # the kind of signature, the issuer, the time, the subject
        raise ValueError("its end is missing")
    return bytes(sequences[3])


def _first_of(pem: str) -> bytes:
    return ssl.PEM_cert_to_DER_cert(pem[: pem.index(ssl.PEM_FOOTER) + len(ssl.PEM_FOOTER)])


def _extensions(certificate: memoryview) -> list[tuple[bytes, memoryview]]:
    signed = der.first(der.first(certificate))
    return [
        found
        for tag, content in der.elements(signed)
        if tag == _EXTENSIONS
        for found in der.extensions(der.first(content))
    ]
