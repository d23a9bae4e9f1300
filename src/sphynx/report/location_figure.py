"""A placement search as a picture, after the paper's figure: beta over the placements, beside each one's accuracy where
it was trained by itself (left); beta over the epochs (right)."""

from __future__ import annotations

from pathlib import Path

from sphynx.search.locate import LocationResult

NAMED_LINES = 5  # the placements with the largest final beta are named in the legend


def draw_location(result: LocationResult, path: Path) -> None:
    from matplotlib.figure import Figure

    names = [f"({','.join(map(str, placement))})" for placement in result.placements]
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[3, 2])
    places = range(len(names))
    beta_axes = left
    if result.accuracy is not None:
        left.plot(places, [100 * value for value in result.accuracy], "x-", color="tab:red")
        left.set_ylabel("held-out accuracy, %", color="tab:red")
        beta_axes = left.twinx()
    beta_axes.plot(places, result.beta_hat[-1], "o-", color="tab:blue")
    beta_axes.set_ylabel(r"$\hat{\beta}$", color="tab:blue")
    beta_axes.set_ylim(0, 1)
    left.set_xticks(list(places), names, rotation=60 if len(names) > 10 else 0)
    left.set_xlabel("reduce cells at")
    final = result.beta_hat[-1]
    largest = sorted(places, key=lambda number: -final[number])[:NAMED_LINES]
    epochs = range(1, len(result.beta_hat) + 1)
    for number in places:
        right.plot(
            epochs,
            [row[number] for row in result.beta_hat],
            marker="." if len(epochs) < 10 else "",
            label=names[number] if number in largest else None,
            color=None if number in largest else "0.8",
        )
    right.set(xlabel="epoch", ylabel=r"$\hat{\beta}$")
    right.legend(fontsize="small")
    figure.savefig(path)
