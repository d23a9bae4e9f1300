"""A drawing's pixels, by matplotlib: the same shapes in the light colours, for places that take no SVG."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sphynx.svg.drawing import LIGHT, Box, Drawing, Line, Shape, Text, mark_outline

_ALIGN = {"start": "left", "middle": "center", "end": "right"}
_POINTS_PER_PIXEL = 0.75


def save_png(drawing: Drawing, path: Path, *, pixels_per_unit: float = 2.0) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(drawing.width / 96, drawing.height / 96), dpi=96 * pixels_per_unit)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, drawing.width), ylim=(drawing.height, 0))
    axes.axis("off")
    for order, shape in enumerate(drawing.shapes):
        _draw(axes, shape, order)
    figure.savefig(path, facecolor=LIGHT["paper"])


def _draw(axes: object, shape: Shape, order: int) -> None:
    from matplotlib.axes import Axes
    from matplotlib.patches import Circle, FancyBboxPatch, Polygon

    assert isinstance(axes, Axes)
    colour = LIGHT[shape.role]
    if isinstance(shape, Text):
        axes.text(
            shape.x,
            shape.y,
            shape.text,
            color=colour,
            fontsize=shape.size * _POINTS_PER_PIXEL,
            zorder=order,
            ha=_ALIGN[shape.anchor] if not shape.turned else "center",
            va="baseline" if not shape.turned else "center",
            weight="bold" if shape.bold else "normal",
            rotation=90 if shape.turned else 0,
        )
        return
    if isinstance(shape, Line):
        xs, ys = zip(*shape.points, strict=True)
        axes.plot(
            xs,
            ys,
            color=colour,
            linewidth=shape.width * _POINTS_PER_PIXEL,
            zorder=order,
            linestyle=(0, (5, 4)) if shape.dashed else "-",
        )
        return
    style: dict[str, Any] = {
        "facecolor": (*_rgb(colour), 0.14 if shape.hollow else shape.strength if isinstance(shape, Box) else 1.0),
        "edgecolor": colour if shape.hollow else "none",
        "linewidth": 1.1,
        "zorder": order,
    }
    if isinstance(shape, Box):
        radius = min(shape.radius, shape.width / 2, shape.height / 2)
        box = f"round,pad=0,rounding_size={radius}" if radius > 0 else "square,pad=0"
        axes.add_patch(FancyBboxPatch((shape.x, shape.y), max(shape.width, 0.1), shape.height, boxstyle=box, **style))
    elif shape.mark == "circle":
        axes.add_patch(Circle((shape.x, shape.y), shape.radius, **style))
    elif shape.mark == "cross":
        corners = mark_outline(shape)
        for (a, b), (c, d) in (corners[:2], corners[2:]):
            axes.plot((a, c), (b, d), color=colour, linewidth=1.6, zorder=order)
    else:
        axes.add_patch(Polygon(mark_outline(shape), **style))


def _rgb(colour: str) -> tuple[float, float, float]:
    red, green, blue = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    return red, green, blue
