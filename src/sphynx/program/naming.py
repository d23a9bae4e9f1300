"""Programs as people name them: by a content hash, its first digits, or a name."""

from __future__ import annotations

import re

from sphynx.errors import InputError

HASH_DIGITS = 64
SHOWN_DIGITS = 16  # to people, and the least that they can name a program by
_DIGITS = frozenset("0123456789abcdef")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def short_hash(content_hash: str) -> str:
    """Shorten a hash for people to read."""
    return content_hash[:SHOWN_DIGITS]


def is_hash(text: str) -> bool:
    """Return whether a text is a hash or its first digits, as `parse_wanted` gives them, and not a name."""
    return bool(text) and not set(text) - _DIGITS


def parse_wanted(text: str) -> str:
    """A program's hash, its first digits or its name, from people; "" is the only program."""
    digits = text.lower()
    if not is_hash(digits):
        if text and not _NAME.fullmatch(text):
            raise InputError(
                f"{text!r} is neither a program's hash nor a name",
                where="program",
                remedy="Give a name that the server lists, or a hash as sphynx compile prints it.",
            )
        return text
    if not SHOWN_DIGITS <= len(digits) <= HASH_DIGITS:
        raise InputError(
            f"{text!r} is not a program's hash",
            where="program",
            remedy=f"Give at least its first {SHOWN_DIGITS} hex digits, as sphynx compile prints them.",
        )
    return digits
