"""A chart as a list of plain shapes. As SVG its text stays text and its colours follow light, dark and print.

Coordinates are pixels from the top left. A shape's `role` names its colour: s0 .. s7 (series), ink, muted, grid, wash.
A `tip` is what a reader sees on hovering (and what a screen reader says). png.py makes the pixels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Literal

Anchor = Literal["start", "middle", "end"]
Mark = Literal["circle", "square", "diamond", "triangle", "cross"]

# Each series colour has a contrast of at least 4.5 : 1 to its background.
LIGHT = {
    "s0": "#1d5fc4", "s1": "#b4490a", "s2": "#147539", "s3": "#8338c4", "s4": "#0b6f86", "s5": "#bb2436",
    "s6": "#566273", "s7": "#75640a", "ink": "#1c2430", "muted": "#55606f", "grid": "#e2e7ee", "wash": "#eef2f8",
    "paper": "#ffffff",
}  # fmt: skip
DARK = {
    "s0": "#7fb2ff", "s1": "#f3a15c", "s2": "#6ed293", "s3": "#cc9bf4", "s4": "#5ac8de", "s5": "#ff8d95",
    "s6": "#a8b4c3", "s7": "#d8c558", "ink": "#e8edf5", "muted": "#a3afbe", "grid": "#2a3340", "wash": "#222b38",
    "paper": "#171c24",
}  # fmt: skip
SERIES = 8
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"


def colour_rules(selector: str = ":root") -> str:
    """The palette as CSS variables; dark on screens that ask for it, never in print."""
    light, dark = ("; ".join(f"--{name}: {value}" for name, value in palette.items()) for palette in (LIGHT, DARK))
    return f"{selector} {{ {light} }}\n@media screen and (prefers-color-scheme: dark) {{ {selector} {{ {dark} }} }}\n"


@dataclass(frozen=True)
class Line:
    points: tuple[tuple[float, float], ...]
    role: str
    width: float = 1.0
    dashed: bool = False
    tip: str = ""


@dataclass(frozen=True)
class Box:
    x: float
    y: float
    width: float
    height: float
    role: str
    radius: float = 0.0
    hollow: bool = False  # an outline, faintly filled
    tip: str = ""
    strength: float = 1.0  # of the colour, over what lies below


@dataclass(frozen=True)
class Dot:
    x: float
    y: float
    role: str
    mark: Mark = "circle"
    radius: float = 4.5
    hollow: bool = False
    tip: str = ""


@dataclass(frozen=True)
class Text:
    x: float
    y: float
    text: str
    role: str = "ink"
    anchor: Anchor = "start"
    size: float = 12.0
    bold: bool = False
    turned: bool = False  # upwards, for the name of a y axis


Shape = Line | Box | Dot | Text


@dataclass
class Drawing:
    width: float
    height: float
    title: str
    shapes: list[Shape] = field(default_factory=list)

    def add(self, *shapes: Shape) -> None:
        self.shapes.extend(shapes)

    def place(self, other: Drawing, x: float, y: float) -> None:
        self.shapes.extend(moved(shape, x, y) for shape in other.shapes)

    def to_svg(self, *, alone: bool = True, css_class: str = "") -> str:
        """`alone` makes a file that brings its own colours; within a page the page's are used."""
        style = f"<style>{colour_rules('svg')} text {{ font-family: {FONT} }}</style>" if alone else ""
        back = f'<rect width="{self.width:g}" height="{self.height:g}" fill="var(--paper)"/>' if alone else ""
        size = f' width="{self.width:g}" height="{self.height:g}"' if alone else ""
        name = f' class="{css_class}"' if css_class else ""
        body = "\n".join(_svg(shape) for shape in self.shapes)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg"{name} viewBox="0 0 {self.width:g} {self.height:g}"{size} '
            f'role="img" aria-label="{escape(self.title, quote=True)}">\n{style}{back}\n{body}\n</svg>\n'
        )

    def _repr_svg_(self) -> str:
        """Show the drawing in a notebook."""
        return self.to_svg()


def moved(shape: Shape, x: float, y: float) -> Shape:
    if isinstance(shape, Line):
        return replace(shape, points=tuple((px + x, py + y) for px, py in shape.points))
    return replace(shape, x=shape.x + x, y=shape.y + y)


def mark_outline(dot: Dot) -> tuple[tuple[float, float], ...]:
    """The corners of a mark that is not a circle; a cross is drawn as its two strokes' ends."""
    x, y, r = dot.x, dot.y, dot.radius
    if dot.mark == "square":
        r *= 0.9
        return (x - r, y - r), (x + r, y - r), (x + r, y + r), (x - r, y + r)
    if dot.mark == "diamond":
        r *= 1.25
        return (x, y - r), (x + r, y), (x, y + r), (x - r, y)
    if dot.mark == "triangle":
        r *= 1.15
        return (x, y - r), (x + r, y + 0.8 * r), (x - r, y + 0.8 * r)
    r *= 0.9
    return (x - r, y - r), (x + r, y + r), (x - r, y + r), (x + r, y - r)


def _svg(shape: Shape) -> str:
    if isinstance(shape, Text):
        turn = f' transform="rotate(-90 {shape.x:.1f} {shape.y:.1f})"' if shape.turned else ""
        bold = ' font-weight="600"' if shape.bold else ""
        return (
            f'<text x="{shape.x:.1f}" y="{shape.y:.1f}" font-size="{shape.size:g}" text-anchor="{shape.anchor}" '
            f'fill="var(--{shape.role})"{bold}{turn}>{escape(shape.text)}</text>'
        )
    if isinstance(shape, Line):
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in shape.points)
        dashes = ' stroke-dasharray="5 4"' if shape.dashed else ""
        inner = (
            f'fill="none" stroke="var(--{shape.role})" stroke-width="{shape.width:g}" stroke-linejoin="round"{dashes}'
        )
        return _with_tip("polyline", f'points="{points}" {inner}', shape.tip)
    paint = _paint(shape.role, hollow=shape.hollow)
    if isinstance(shape, Box):
        where = f'x="{shape.x:.1f}" y="{shape.y:.1f}" width="{max(shape.width, 0):.1f}" height="{shape.height:.1f}"'
        faint = f' fill-opacity="{shape.strength:.2f}"' if shape.strength < 1 else ""
        return _with_tip("rect", f'{where} rx="{shape.radius:g}" {paint}{faint}', shape.tip)
    if shape.mark == "circle":
        return _with_tip("circle", f'cx="{shape.x:.1f}" cy="{shape.y:.1f}" r="{shape.radius:g}" {paint}', shape.tip)
    corners = mark_outline(shape)
    if shape.mark == "cross":
        (a, b), (c, d), (e, f), (g, h) = corners
        stroke = f'd="M{a:.1f},{b:.1f}L{c:.1f},{d:.1f}M{e:.1f},{f:.1f}L{g:.1f},{h:.1f}" fill="none"'
        return _with_tip("path", f'{stroke} stroke="var(--{shape.role})" stroke-width="2.2"', shape.tip)
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
    return _with_tip("polygon", f'points="{points}" {paint}', shape.tip)


def _paint(role: str, *, hollow: bool) -> str:
    if hollow:
        return f'fill="var(--{role})" fill-opacity="0.14" stroke="var(--{role})" stroke-width="1.5"'
    return f'fill="var(--{role})"'


def _with_tip(tag: str, attributes: str, tip: str) -> str:
    if not tip:
        return f"<{tag} {attributes}/>"
    text = escape(tip)
    return f'<{tag} {attributes} class="tip" data-tip="{escape(tip, quote=True)}"><title>{text}</title></{tag}>'


def roles(names: Iterable[str]) -> Mapping[str, str]:
    """A series colour for each name, in order."""
    return {name: f"s{number % SERIES}" for number, name in enumerate(dict.fromkeys(names))}


_EMS = {c: ems for ems, these in ((0.34, "ijlI.,:;|' "), (0.41, "frt()/-[]"), (0.98, "mMW@%")) for c in these}


def text_width(text: str, size: float = 12.0) -> float:
    """Estimate a text's width by letter classes of DejaVu Sans, a wide font: browsers with another one leave some
    room."""
    return sum(_EMS.get(c, 0.69 if c.isupper() else 0.63) for c in text) * size


@dataclass(frozen=True)
class Key:
    """One entry of a legend: a mark, or a piece of line."""

    name: str
    role: str
    mark: Mark = "square"
    hollow: bool = False
    line: bool = False


def legend(entries: Sequence[Key], width: float, size: float = 12.0) -> Drawing:
    """A legend in as many lines as the width asks for."""
    x, y, line = 0.0, 0.0, size + 7
    drawing = Drawing(width, line, "legend")
    for entry in entries:
        needed = 16 + text_width(entry.name, size) + 14
        if x and x + needed > width:
            x, y = 0.0, y + line
        middle = y + line / 2
        if entry.line:
            drawing.add(Line(((x, middle), (x + 12, middle)), entry.role, 2.5))
        else:
            drawing.add(Dot(x + 6, middle, entry.role, entry.mark, 4.5, entry.hollow))
        drawing.add(Text(x + 16, middle + size * 0.35, entry.name, "ink", size=size))
        x += needed
    drawing.height = y + line
    return drawing
