"""Networks beside each other that differ in their cells only: accuracy over seeds, and what one gained over another."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Row:
    cells: str
    accuracies: tuple[float, ...]  # on the test images, at the final epoch, one per seed
    mean: float
    deviation: float | None  # of one seed there is none
    parameters: int  # of the first seed's network
    minutes: float

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "accuracies": list(self.accuracies)}


@dataclass(frozen=True)
class Gain:
    """Difference of two means, in points (hundredths of accuracy). Of one seed each there is no standard error."""

    against: str
    points: float
    standard_error: float | None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        word = "gained" if self.points > 0 else "lost" if self.points < 0 else "changed"
        if self.standard_error is None:
            spread = "one seed: no spread is known"
        else:
            unsure = "" if abs(self.points) > 2 * self.standard_error else ": within chance"
            spread = f"standard error {self.standard_error:.2f}{unsure}"
        return f"{word} {abs(self.points):.2f} points against {self.against} ({spread})"


def row_of(cells: str, summary: Mapping[str, Any]) -> Row:
    """From `runs.summarise`."""
    return Row(
        cells,
        tuple(summary["accuracies"]),
        summary["accuracy"],
        summary["accuracy_std"],
        summary["runs"][0]["parameters"],
        summary["minutes"],
    )


def gain(own: Row, other: Row) -> Gain:
    error = None
    if own.deviation is not None and other.deviation is not None:
        error = math.sqrt(
            sum(row.deviation**2 / len(row.accuracies) for row in (own, other) if row.deviation is not None)
        )
    return Gain(other.cells, 100 * (own.mean - other.mean), None if error is None else 100 * error)
