"""Names of layers for people: `stages.1.0.activation` is "stage 2, block 1: ReLUs"."""

from __future__ import annotations

import re

from sphynx.program.ir import INPUT
from sphynx.program.outputs import LOGITS

_PIECE = re.compile(r"\[[^\]]*\]")  # of a tensor that is sent in pieces
_PLACES = (
    (re.compile(r"^cells\.(\d+)"), "cell {}"),
    (re.compile(r"^stages\.(\d+)\.(\d+)"), "stage {}, block {}"),
)
_ENDS = ((".activation.input", "linear part"), (".activation", "ReLUs"), (".stream", "sum"))
_WHOLE = {INPUT: "the picture", LOGITS: "the answer"}


def describe_layer(name: str) -> str:
    """Name a layer of one of our own networks in words; others keep the name that their makers gave them."""
    whole = _PIECE.sub("", name)
    base = whole.removesuffix("/mask")
    words = _WHOLE.get(base) or _describe_place(base)
    words += ", a strip at its edge" if whole != name else ""
    return f"{words}, masked" if base != whole else words


def _describe_place(base: str) -> str:
    for pattern, words in _PLACES:
        if place := pattern.match(base):
            what = base[place.end() :]
            numbers = (int(number) + 1 for number in place.groups())
            return ": ".join(part for part in (words.format(*numbers), _describe_end(what)) if part)
    return base.replace("_", " ")


def _describe_end(end: str) -> str:
    for suffix, words in _ENDS:
        if end == suffix:
            return words
    return end.strip(".").replace("_", " ").replace(".", " ")
