"""Choose where a supernet reduces, so that its cells are searched at the sizes at which they will be used.

The paper searches with reduce cells at D/3 and 2D/3 and then moves them to the front (Algorithm 1): most cells of the
network see smaller maps than any in the search did. On 4x4 pixels the 9x9 window of dil5 is mostly padding, on 32x32 it
is the widest view there is. A supernet that reduces early, as often as the network, does not prefer it for that.
"""

from __future__ import annotations

from sphynx.errors import InputError

Places = tuple[int, ...]


def early_places(depth: int, reduce_cells: int) -> Places:
    """Before Algorithm 1 has placed them: the first two cells, and further ones evenly from there to 2D/3.

    (0, 1) for two; (0, 1, 2D/3) for three. All at the front where the network is too shallow for that.
    """
    _require_room(depth, reduce_cells)
    first, further = min(reduce_cells, 2), max(reduce_cells - 2, 0)
    last = max(2 * depth // 3, reduce_cells - 1)
    return (*range(first), *(1 + (last - 1) * number // further for number in range(1, further + 1)))


def places_in_another_depth(places: Places, depth: int, other_depth: int) -> Places:
    """Scale places to another depth: (0, 1, 8) of 10 cells are (0, 1, 4) of 5. No two coincide, none is past the
    last cell."""
    _require_room(other_depth, len(places))
    found: list[int] = []
    for number, place in enumerate(places):
        after_the_one_before = found[-1] + 1 if found else 0
        room_for_the_rest = other_depth - (len(places) - number)
        found.append(min(max(place * other_depth // depth, after_the_one_before), room_for_the_rest))
    return tuple(found)


def _require_room(depth: int, reduce_cells: int) -> None:
    if reduce_cells > depth:
        raise InputError(
            f"a supernet of depth {depth} has no room for the network's {reduce_cells} reduce cells",
            remedy=f'Use fewer reduce cells, or a deeper supernet: `settings={{"cells.depth": {reduce_cells + 1}}}`.',
        )
