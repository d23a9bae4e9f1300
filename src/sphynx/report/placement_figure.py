"""A placement search as a picture, after the paper's figure: beta over the placements, beside each one's accuracy where
it was trained by itself; and beta over the epochs."""

from __future__ import annotations

from pathlib import Path

from sphynx.report.figures import beta_drawing
from sphynx.report.svg.charts import WIDE, Bar, Group, bars, stacked
from sphynx.report.svg.drawing import Key
from sphynx.search.placement.place import PlacementResult


def draw_placement(result: PlacementResult, path: Path) -> None:
    groups = []
    for number, (placement, beta) in enumerate(zip(result.placements, result.beta_hat[-1], strict=True)):
        name = f"({','.join(map(str, placement))})"
        members = [Bar(100 * beta, "s1", tip=f"{name}: beta {beta:.4f}")]
        if result.accuracy is not None:
            accuracy = 100 * result.accuracy[number]
            members.append(Bar(accuracy, "s0", tip=f"{name}: {accuracy:.2f} % on held-out images"))
        groups.append(Group(name, members))
    key = [Key("beta", "s1"), *([Key("held-out accuracy, trained alone", "s0")] if result.accuracy else [])]
    chosen = bars("placements", groups, key, y_name="percent", from_zero=True)
    over_time = beta_drawing(result.placements, result.beta_hat, WIDE)
    drawing = stacked("placement search", [("reduce cells at", chosen), ("beta over the search", over_time)], WIDE)
    path.write_text(drawing.to_svg())
