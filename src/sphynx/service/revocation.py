"""Read a revocation list (RFC 5280, in PEM) as a server does: which certificates, its number, until when; and how long
the server's own certificate is valid.

The package `cryptography` parses it, which Sphynx's `serve` extra brings. Signatures are OpenSSL's to check
(`credentials.py`), before a number is kept.

An old list is signed as well as a new one: whoever puts it back admits again whom the new one took out. Lists therefore
have numbers that grow, and `SeenNumbers` keeps the highest.
"""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass
from pathlib import Path

from sphynx import system
from sphynx.errors import InputError, MissingPartError

try:
    from cryptography import x509
except ModuleNotFoundError:
    raise MissingPartError("serving needs the package cryptography", remedy="pip install cryptography") from None

SEEN = "revoked.number"
_PEM = re.compile(rb"-----BEGIN X509 CRL-----.+?-----END X509 CRL-----", re.DOTALL)


@dataclass(frozen=True)
class Revocations:
    serials: frozenset[int]
    number: int  # 0: it has none
    next_update_s: float  # when the next list is due, in seconds since 1970


def read_revocations(pem: bytes) -> Revocations:
    """Join all lists in the file; a ValueError if there is none, or one that cannot be read. The number is the
    lowest: OpenSSL checks the signature of one, and a higher number of another must not be kept for it."""
    try:
        found = [x509.load_pem_x509_crl(text) for text in _PEM.findall(pem)]
        if not found:
            raise ValueError("it contains no revocation list")
        return Revocations(
            frozenset(entry.serial_number for one in found for entry in one),
            min(map(number_of, found)),
            min(math.inf if one.next_update_utc is None else one.next_update_utc.timestamp() for one in found),
        )
    except (x509.InvalidVersion, x509.DuplicateExtension, x509.UnsupportedGeneralNameType) as error:
        raise ValueError(str(error)) from None


def number_of(listed: x509.CertificateRevocationList) -> int:
    """Return the number of a list, 0 if it has none."""
    try:
        return listed.extensions.get_extension_for_class(x509.CRLNumber).value.crl_number
    except x509.ExtensionNotFound:
        return 0


def lifetime_of(pem: bytes) -> tuple[float, float]:
    """Say from when to when a file's first certificate, which OpenSSL has loaded, is valid, in seconds since 1970."""
    certificate = x509.load_pem_x509_certificates(pem)[0]
    return certificate.not_valid_before_utc.timestamp(), certificate.not_valid_after_utc.timestamp()


class SeenNumbers:
    """The highest number of a list that was used with a state folder, also by other processes that share it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def raise_to(self, number: int) -> int:
        """Keeps the number if it is the highest so far; the highest in any case."""
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with os.fdopen(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600), "r+") as file:
                system.lock(file)
                seen = int(file.read() or "0")
                if number > seen:
                    file.seek(0)
                    file.write(f"{number}\n")  # never shorter than before, so that no digit is left over
                    file.flush()
                    os.fsync(file.fileno())
                return max(seen, number)
        except (OSError, ValueError) as error:
            raise InputError(
                f"it does not hold the number of the newest list of revoked keys ({error})",
                where=str(self.path),
                remedy="Put the authority's newest revoked.pem into the key folder, then delete this file.",
            ) from None
