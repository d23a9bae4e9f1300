"""The link between the two parties: a round trip and a bandwidth each way, by name or as the user writes them.

Both are what the link adds to two processes on one machine: loopback adds nothing.
"""

from __future__ import annotations

import math
import re
from dataclasses import asdict, dataclass
from typing import Any

from sphynx.errors import InputError


@dataclass(frozen=True)
class Link:
    round_trip_s: float
    bits_per_s: float
    name: str = ""

    def transfer_s(self, nbytes: float) -> float:
        return 8 * nbytes / self.bits_per_s

    def to_json(self) -> dict[str, Any]:
        """JSON has no infinity: null where the bandwidth is not limited."""
        limited = math.isfinite(self.bits_per_s)
        return {**asdict(self), "bits_per_s": self.bits_per_s if limited else None}

    @classmethod
    def from_json(cls, data: Any) -> Link:
        """A link as `to_json` wrote it, or as a user does."""
        if isinstance(data, str):
            return parse_link(data)
        return cls(data["round_trip_s"], data["bits_per_s"] or math.inf, data["name"])


LINKS = {
    link.name: link
    for link in (
        Link(0.0, math.inf, "loopback"),
        Link(0.5e-3, 1e9, "lan"),  # two machines in one data centre
        Link(40e-3, 100e6, "wan"),  # a client at home, a server on its continent
    )
}
LINK_WORDS = "loopback, lan (0.5 ms, 1 Gbit/s), wan (40 ms, 100 Mbit/s), or a link such as 20ms,300Mbit."
_LINK = re.compile(r"\s*([\d.]+)\s*(us|ms|s)\s*,\s*([\d.]+)\s*([kmg])bit(?:/s)?\s*", re.IGNORECASE)
_TIME_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
_RATE_UNITS = {"k": 1e3, "m": 1e6, "g": 1e9}


def parse_link(text: str) -> Link:
    """`loopback`, `lan`, `wan`, or a round trip and a bandwidth: `20ms,300Mbit`."""
    if text in LINKS:
        return LINKS[text]
    match = _LINK.fullmatch(text)
    try:
        if match is None:
            raise ValueError
        round_trip_s = float(match[1]) * _TIME_UNITS[match[2].lower()]
        bits_per_s = float(match[3]) * _RATE_UNITS[match[4].lower()]
        if bits_per_s <= 0:
            raise ValueError
    except ValueError:
        raise InputError(
            f"{text!r} is not a valid link",
            where="`link`",
            remedy=f"Use {', '.join(LINKS)}, or a link such as 20ms,300Mbit.",
        ) from None
    return Link(round_trip_s, bits_per_s, text)


def parse_links(text: str) -> list[Link]:
    """Several, with commas between them; a round trip is followed by its bandwidth."""
    words = iter(text.split(","))
    return [parse_link(word if word in LINKS else f"{word},{next(words, '')}") for word in words]


def parse_seconds(text: float | str) -> float:
    """`100ms`, `1.5s`; a number is seconds already."""
    if not isinstance(text, str):
        return text
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(us|ms|s)\s*", text)
    if match is None or float(match[1]) == 0:
        raise InputError(f"{text!r} is not a valid time", remedy="Write it as 100ms or 1.5s.")
    return float(match[1]) * _TIME_UNITS[match[2]]
