"""List where the reduce cells may go: all placements, the paper's, and those that keep a number of ReLUs.

ReLU balancing makes every cell equal only where sizes are even: 7 pixels become 4, and one stays one, with four times
the channels. A network with more reduce cells, or with earlier ones, can have more ReLUs there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from sphynx.errors import InputError
from sphynx.search.choices import Candidates
from sphynx.space.account import relu_count
from sphynx.space.design import Design

Placement = tuple[int, ...]


def placements(depth: int, reduce_cells: int = 2, candidates: Candidates = "all") -> tuple[Placement, ...]:
    """All C(D, n) of them (the paper's text), or those with no position beyond 2D/3 (the paper's figures)."""
    last = depth - 1 if candidates == "all" else 2 * depth // 3
    found = tuple(combinations(range(min(last, depth - 1) + 1), reduce_cells))
    if reduce_cells < 1 or not found:
        raise InputError(
            f"{reduce_cells} reduce cells cannot be placed in a network of depth {depth}",
            remedy="Use a deeper network or fewer reduce cells.",
        )
    return found


def placements_within(
    design: Design, places: Sequence[Placement], most_relus: float, limit: str
) -> tuple[Placement, ...]:
    """Keep the placements with at most `most_relus` ReLUs; where there is none, `limit` says whose limit that is."""
    counts = {place: relu_count(replace(design, reduce_positions=place)) for place in places}
    within = tuple(place for place, relus in counts.items() if relus <= most_relus)
    if not within:
        raise InputError(
            f"with {len(places[0])} reduce cells the network has at least {min(counts.values()):,} ReLUs, {limit}",
            remedy="Use fewer reduce cells, or images whose size can be halved that often.",
        )
    return within
