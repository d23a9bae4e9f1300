"""Limits of what a network from elsewhere may ask for, checked before anything is made. No torch."""

from __future__ import annotations

LARGEST_MAP = 1 << 24  # elements: VGG's first layer at 512x512
MOST_AXES = 8
TIMES_GIVEN = 4  # what a file may become
CHECK_SIZES = "Check its constants: they ask for more than a network needs."


def most_weights(given_elements: int) -> int:
    """Limit the elements that a layer's weights take when used, given how many the file holds."""
    return max(LARGEST_MAP, TIMES_GIVEN * given_elements)


class Allowance:
    """The elements that constants may have that are computed from those of a file, all of them together.

    A file of a few hundred bytes can ask for gigabytes, by one operator or by many.
    """

    def __init__(self, given_elements: int) -> None:
        self._left = LARGEST_MAP + TIMES_GIVEN * given_elements

    def take(self, elements: int) -> bool:
        """Take room for that many more elements; return whether there was any."""
        if elements > self._left:
            return False
        self._left -= elements
        return True
