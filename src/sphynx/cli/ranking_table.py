"""The table of ranked cells: what each had right on held-out images, in the rounds that it reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sphynx.cli.output import print_table
from sphynx.units import percent

Trainings = Sequence[tuple[int, float]]  # epochs and accuracy, one per round that it was in


def print_ranking(title: str, ranked: Sequence[tuple[str, Trainings]]) -> None:
    """Best first, as `search.ranking` gives them. Known cells are in the last round only, beaten ones in the first."""
    lengths = sorted({epochs for _, trainings in ranked for epochs, _ in trainings})
    print_table(
        title,
        ["cells", *(f">after {epochs} epochs" for epochs in lengths)],
        ([label, *_by_length(dict(trainings), lengths)] for label, trainings in ranked),
    )


def _by_length(trainings: Mapping[int, float], lengths: Sequence[int]) -> list[str]:
    return [percent(trainings[epochs]) if epochs in trainings else "-" for epochs in lengths]
