"""A report of what many random networks became: counted by reader and verdict, with every error and cause."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from tests.fuzz_networks.trial import ERRORS, NOTABLE, READERS, Outcome

LEAST_COMPILED = 0.9  # of all networks that torch could write
_SHOWN = 12  # reasons and networks of each kind


def errors_of(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return the trials that the compiler got wrong."""
    return [found for found in outcomes if found.verdict in ERRORS]


def compiled_share(outcomes: Sequence[Outcome]) -> float:
    given = [found for found in outcomes if found.verdict != "not exported"]
    return sum(found.verdict == "compiled" for found in given) / max(1, len(given))


def notable(outcomes: Sequence[Outcome]) -> list[Outcome]:
    return [found for found in outcomes if found.verdict == "compiled" and found.error > NOTABLE]


def to_json(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    return {
        "networks": len({found.seed for found in outcomes}),
        "verdicts": {
            reader: dict(Counter(found.verdict for found in outcomes if found.reader == reader)) for reader in READERS
        },
        "compiled": round(compiled_share(outcomes), 4),
        "asked_privately": sum(found.asked_privately for found in outcomes),
        "refusals": dict(_reasons(outcomes)),
        "errors": [vars(found) for found in errors_of(outcomes)],
        "notable": [vars(found) for found in notable(outcomes)],
        "seconds": round(sum(found.seconds for found in outcomes), 1),
    }


def lines(outcomes: Sequence[Outcome]) -> Iterator[str]:
    seeds = sorted({found.seed for found in outcomes})
    yield f"{len(seeds):,} networks, of seeds {seeds[0]} to {seeds[-1]}"
    verdicts = Counter((found.reader, found.verdict) for found in outcomes)
    for reader in READERS:
        counts = ", ".join(f"{count:,} {verdict}" for (by, verdict), count in sorted(verdicts.items()) if by == reader)
        yield f"  {reader:6} {counts}"
    asked = sum(found.asked_privately for found in outcomes)
    yield f"  {compiled_share(outcomes):.1%} compiled of what torch could write; {asked:,} asked privately"
    yield f"refusals, {sum(found.verdict == 'refused' for found in outcomes):,}:"
    yield from (f"  {count:6,}  {why}" for why, count in _reasons(outcomes).most_common(_SHOWN))
    above = notable(outcomes)
    yield f"off by more than {NOTABLE:.0%} of the spread, {len(above):,}:"
    causes = Counter(_kind(found.why) for found in above)
    yield from (f"  {count:6,}  {why}" for why, count in causes.most_common())
    for found in sorted(above, key=lambda each: -each.error):
        yield f"          seed {found.seed}, {found.reader}: {found.error:.1%}, {found.why}"
    yield f"errors of the compiler, {len(errors_of(outcomes)):,}:"
    yield from (
        f"          seed {found.seed}, {found.reader}: {found.verdict}, {found.error:.1%}, {found.why}"
        for found in errors_of(outcomes)
    )


def _reasons(outcomes: Sequence[Outcome]) -> Counter[str]:
    return Counter(_kind(found.why) for found in outcomes if found.verdict == "refused")


def _kind(why: str) -> str:
    """A reason without where it was found and with which numbers."""
    short = re.sub(r"^(?:\S*network\.\w+|Sequential|part\.\S+|logits|network)(?:, [^:]*)?: ", "", why)
    return re.sub(r"\d[\d,.]*(?:e[+-]?\d+)?%?", "n", short)[:110]
