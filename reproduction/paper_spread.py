"""Networks that the paper prints in several places, and how far its own numbers lie apart."""

from __future__ import annotations

from dataclasses import dataclass

from reproduction.experiments import Row, read_rows
from reproduction.outcomes import RANDOM, SEARCHED


@dataclass(frozen=True)
class Prints:
    """One network and the accuracies that the paper prints for it, the lowest first, each with its first source."""

    network: str
    accuracies: dict[float, str]

    @property
    def range(self) -> float:
        return max(self.accuracies) - min(self.accuracies)


def networks_printed_twice() -> list[Prints]:
    """Find the networks whose prints differ, the farthest apart first."""
    found: dict[tuple[object, ...], list[Row]] = {}
    for row in read_rows():
        if row.accuracy is not None and not row.cells.startswith((SEARCHED, RANDOM)):
            network = (row.data, row.network, row.cells, row.channels, row.depth, row.reduce_at, *row.options.items())
            found.setdefault(network, []).append(row)
    prints = [Prints(_name_of(rows[0]), _sort_by_accuracy(rows)) for rows in found.values()]
    return sorted((one for one in prints if one.range), key=lambda one: -one.range)


def _name_of(row: Row) -> str:
    places = ",".join(map(str, row.reduce_at or ()))
    return f"C={row.channels} D={row.depth} at ({places})"


def _sort_by_accuracy(rows: list[Row]) -> dict[float, str]:
    found: dict[float, str] = {}
    for row in sorted(rows, key=lambda row: row.accuracy or 0.0):
        found.setdefault(row.accuracy or 0.0, row.source)
    return found
