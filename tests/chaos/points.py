"""All points there are: every fault at every moment of every process, and at every TLS record of every link."""

from __future__ import annotations

import random

from tests.chaos.proxy import DIRECTIONS, NETWORK_FAULTS, RecordBlow
from tests.chaos.strike import PHASES, PROCESS_FAULTS, Blow
from tests.chaos.world import Point

POOL_FAULTS = ("kill -9", "pause")  # the rest is the client's code in the client's folder
Counts = dict[tuple[str, str], int]


def all_points(counts: Counts, seed: int) -> list[Point]:
    """In random order, so that the first thousand are a fair sample. `counts` as `World.count`."""
    found = [
        Point(place, Blow(fault, phase, moment))
        for place, faults in (("client", PROCESS_FAULTS), ("server", PROCESS_FAULTS), ("pool", POOL_FAULTS))
        for fault in faults
        for phase in (PHASES[:2] if place == "pool" else PHASES)
        for moment in range(counts["client" if place == "pool" else place, phase])
    ]
    found += [
        Point(place, RecordBlow(fault, phase, direction, record))
        for place, phases in (("client link", PHASES[1:]), ("pool link", PHASES[1:2]))
        for fault in NETWORK_FAULTS
        for phase in phases
        for direction in DIRECTIONS
        for record in range(counts[direction, phase])
    ]
    dice = random.Random(seed)
    dice.shuffle(found)
    return [seeded(point, dice.randrange(1 << 31)) for point in found]


def seeded(point: Point, seed: int) -> Point:
    blow = point.blow
    if isinstance(blow, Blow):
        return Point(point.place, Blow(blow.fault, blow.phase, blow.moment, seed))
    return Point(point.place, RecordBlow(blow.fault, blow.phase, blow.direction, blow.record, seed))
