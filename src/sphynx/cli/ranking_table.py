"""The table of ranked cells: what each had right on held-out images, in the rounds that it reached."""

from __future__ import annotations

from collections.abc import Sequence

from sphynx.cli.output import print_table

Trainings = Sequence[tuple[int, float]]  # epochs and accuracy, one per round


def print_ranking(title: str, ranked: Sequence[tuple[str, Trainings]]) -> None:
    """Best first, as `search.ranking` gives them: the first one has been in every round."""
    lengths = [epochs for epochs, _ in ranked[0][1]]
    print_table(
        title,
        ["cells", *(f">round {number}: {epochs} epochs" for number, epochs in enumerate(lengths, 1))],
        (
            [label, *(f"{accuracy:.2%}" for _, accuracy in trainings), *["-"] * (len(lengths) - len(trainings))]
            for label, trainings in ranked
        ),
    )
