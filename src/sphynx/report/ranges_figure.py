"""How a program's values fill its ring: per linear map the bits that data used, its range, and its bound."""

from __future__ import annotations

from pathlib import Path

from sphynx.program.check import LayerRange


def draw_ranges(layers: tuple[LayerRange, ...], ring_bits: int, path: Path) -> None:
    """The file's ending says the format: svg, png or pdf."""
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
    axes.set_yticks(list(places), [layer.name + ("" if layer.range_bits else " (chain)") for layer in layers])
    axes.invert_yaxis()
    axes.set_xlabel("bits, sign included")
    axes.legend(fontsize="small", loc="lower right")
    figure.savefig(path)
