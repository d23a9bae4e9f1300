"""Which certificates a revocation list (RFC 5280, in PEM) names, by their serial numbers. Standard library only.

TLS judges a client once, in its handshake, and checks the list's signature there. To judge a connection that is open
already it is enough to read the list: whoever could forge the file can read the server's key beside it.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator

_PEM = re.compile(rb"-----BEGIN X509 CRL-----(.+?)-----END X509 CRL-----", re.DOTALL)
_SEQUENCE = 0x30


def revoked_serials(pem: bytes) -> frozenset[int]:
    """Of all lists in the file; a ValueError if there is none, or one that cannot be read."""
    lists = _PEM.findall(pem)
    if not lists:
        raise ValueError("it holds no revocation list")
    return frozenset(serial for text in lists for serial in _serials(memoryview(base64.b64decode(text))))


def _serials(der: memoryview) -> Iterator[int]:
    to_be_signed = _first(_first(der))
    # Three of its elements are sequences: the kind of signature, the issuer, and unless nobody is revoked, the entries.
    sequences = [content for tag, content in _elements(to_be_signed) if tag == _SEQUENCE]
    for entries in sequences[2:]:
        for _, entry in _elements(entries):
            yield int.from_bytes(_first(entry), "big", signed=True)


def _first(der: memoryview) -> memoryview:
    for _, content in _elements(der):
        return content
    raise ValueError("its end is missing")


def _elements(der: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Tags and contents of what is encoded back to back (DER, X.690)."""
    while der:
        tag, size_bytes, start = der[0], der[1] if len(der) > 1 else 0, 2
        if size_bytes & 0x80:  # then it is how many bytes the size itself takes
            start += size_bytes & 0x7F
            size_bytes = int.from_bytes(der[2:start], "big")
        if len(der) < start + size_bytes:
            raise ValueError("its end is missing")
        yield tag, der[start : start + size_bytes]
        der = der[start + size_bytes :]
