"""The little of DER (X.690) that certificates need: elements, and what they hold."""

from __future__ import annotations

from collections.abc import Iterator

OCTETS, OBJECT, SEQUENCE = 0x04, 0x06, 0x30


def elements(der: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Yield tags and contents of what is encoded back to back."""
    while der:
        tag, size_bytes, start = der[0], der[1] if len(der) > 1 else 0, 2
        if size_bytes & 0x80:  # then it is how many bytes the size itself takes
            start += size_bytes & 0x7F
            size_bytes = int.from_bytes(der[2:start], "big")
        if len(der) < start + size_bytes:
            raise ValueError("its end is missing")
        yield tag, der[start : start + size_bytes]
        der = der[start + size_bytes :]


def first(der: memoryview) -> memoryview:
    """Return the content of the first element."""
    for _, content in elements(der):
        return content
    raise ValueError("its end is missing")


def extensions(der: memoryview) -> Iterator[tuple[bytes, memoryview]]:
    """Yield identifier and content of every X.509 extension of a sequence of them."""
    for _, extension in elements(der):
        parts = list(elements(extension))  # which, whether critical (may be left out), what
        if not parts:
            continue
        (kind, which), (held_as, what) = parts[0], parts[-1]
        if kind == OBJECT and held_as == OCTETS:
            yield bytes(which), what
