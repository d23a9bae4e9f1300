"""Which placements of the reduce cells keep a number of ReLUs.

ReLU balancing makes every cell equal only where sizes are even: 7 pixels become 4, and one stays one, with four times
the channels. A network with more reduce cells, or with earlier ones, can have more ReLUs there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sphynx.errors import InputError
from sphynx.search.placement.algorithm import Placement
from sphynx.space.account import relu_count
from sphynx.space.design import Design


def placements_within(
    design: Design, places: Sequence[Placement], most_relus: float, limit: str
) -> tuple[Placement, ...]:
    """Those with which the design has at most so many ReLUs; `limit` says whose limit that is, where none has."""
    counts = {place: relu_count(replace(design, reduce_positions=place)) for place in places}
    within = tuple(place for place, relus in counts.items() if relus <= most_relus)
    if not within:
        raise InputError(
            f"with {len(places[0])} reduce cells the network has at least {min(counts.values()):,} ReLUs, {limit}",
            remedy="Take fewer reduce cells, or images whose size can be halved as often.",
        )
    return within
