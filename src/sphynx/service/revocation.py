"""Read a revocation list (RFC 5280, in PEM): which certificates, its number, until when. Standard library only.

Signatures are OpenSSL's to check (`credentials.py`), before a number is kept.

An old list is signed as well as a new one: whoever puts it back admits again whom the new one took out. Lists therefore
have numbers that grow, and `SeenNumbers` keeps the highest.
"""

from __future__ import annotations

import base64
import datetime
import fcntl
import math
import os
import re
from dataclasses import dataclass
from pathlib import Path

from sphynx.errors import InputError
from sphynx.service import der

SEEN = "revoked.number"
_PEM = re.compile(rb"-----BEGIN X509 CRL-----(.+?)-----END X509 CRL-----", re.DOTALL)
_UTC_TIME, _TIME, _EXTENSIONS = 0x17, 0x18, 0xA0
_NUMBER = bytes((0x55, 0x1D, 0x14))  # 2.5.29.20, the CRL number


@dataclass(frozen=True)
class Revocations:
    serials: frozenset[int]
    number: int  # 0: it has none
    next_update_s: float  # when the next list is due, in seconds since 1970


def read_revocations(pem: bytes) -> Revocations:
    """Join all lists in the file; a ValueError if there is none, or one that cannot be read. The number is the
    lowest: OpenSSL checks the signature of one, and a higher number of another must not be kept for it."""
    found = [_read(memoryview(base64.b64decode(text))) for text in _PEM.findall(pem)]
    if not found:
        raise ValueError("it contains no revocation list")
    return Revocations(
        frozenset().union(*(one.serials for one in found)),
        min(one.number for one in found),
        min(one.next_update_s for one in found),
    )


class SeenNumbers:
    """The highest number of a list that was used with a state folder, also by other processes that share it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def raise_to(self, number: int) -> int:
        """Keeps the number if it is the highest so far; the highest in any case."""
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with os.fdopen(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600), "r+") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
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


def _read(listed: memoryview) -> Revocations:
    parts = list(der.elements(der.first(der.first(listed))))
    # Three of them are sequences: the kind of signature, the issuer, and unless nobody is revoked, the entries.
    sequences = [content for tag, content in parts if tag == der.SEQUENCE]
    entries = (entry for content in sequences[2:] for _, entry in der.elements(content))
    times = [_seconds(tag, content) for tag, content in parts if tag in (_UTC_TIME, _TIME)]
    extensions = [found for tag, part in parts if tag == _EXTENSIONS for found in der.extensions(der.first(part))]
    numbers = [der.integer(what) for which, what in extensions if which == _NUMBER]
    return Revocations(
        frozenset(der.integer(entry) for entry in entries), max(numbers, default=0), times[1] if times[1:] else math.inf
    )


def _seconds(tag: int, content: memoryview) -> float:
    text = bytes(content).decode("ascii")
    if tag == _UTC_TIME:  # RFC 5280: two digits of the year, from 1950 on
        text = ("19" if text[:2] >= "50" else "20") + text
    return datetime.datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=datetime.UTC).timestamp()
