"""Pictures that a verb draws of its own result: `sphynx search placement` and `sphynx check`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sphynx.report.figures import beta_drawing
from sphynx.search.placement.doubt import doubt
from sphynx.search.placement.place import PlacementResult
from sphynx.svg.charts import WIDE, Bar, Group, bars, stacked
from sphynx.svg.drawing import Key

if TYPE_CHECKING:
    from sphynx.compiler.check import LayerRange


def draw_placement(result: PlacementResult, path: Path) -> None:
    """After the paper's figure: beta over the placements, beside each one's accuracy where it was trained by itself.

    Below it beta over the epochs.
    """
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
    why = doubt(result.placements, result.beta_hat)
    note = f"Inconclusive: {why}." if why else ""
    over_time = beta_drawing(result.placements, result.beta_hat, WIDE, note=note)
    drawing = stacked("placement search", [("reduce cells at", chosen), ("beta over the search", over_time)], WIDE)
    path.write_text(drawing.to_svg())


def draw_ranges(layers: tuple[LayerRange, ...], ring_bits: int, path: Path) -> None:
    """How values fill the ring: per linear map the bits that data used, its range, and its bound.

    The file's ending says the format: svg, png or pdf.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 1.2 + 0.28 * len(layers)), layout="constrained")
    axes = figure.subplots()
    places = range(len(layers))
    axes.barh(places, [layer.used_bits for layer in layers], color="tab:blue", label="largest value on this data")
    ranged = [(place, layer.range_bits) for place, layer in zip(places, layers, strict=True) if layer.range_bits]
    axes.plot([bits for _, bits in ranged], [place for place, _ in ranged], "k|", markersize=12, label="range")
    bounds = [layer.bound_bits for layer in layers]
    axes.plot(bounds, places, "x", color="tab:red", label="no input exceeds (sum of absolute weights)")
    axes.axvline(ring_bits, color="0.4", linestyle="--", label=f"ring, {ring_bits} bits")
    axes.set_yticks(list(places), [layer.name + ("" if layer.range_bits else " (may wrap)") for layer in layers])
    axes.invert_yaxis()
    axes.set_xlabel("bits, sign included")
    axes.legend(fontsize="small", loc="lower right")
    figure.savefig(path)
