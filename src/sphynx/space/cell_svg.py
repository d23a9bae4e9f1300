"""A cell as a picture: nodes as boxes from left to right, edges as curves labelled with their operation.

Pure text in, SVG text out. The colours follow the reader's light or dark setting.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from sphynx.space.cell import INPUT_NODES, Cell

COLUMN_WIDTH, NARROW_COLUMN = 168, 148
MANY_COLUMNS = 6  # a cell that is a chain: narrower, so that its words are not shrunk on a page
ROW_HEIGHT = 74
BOX_WIDTH = 58
BOX_HEIGHT = 30
MARGIN = 26
TITLE_HEIGHT = 34
LABEL_HEIGHT, LETTER_WIDTH = 14, 6.0
LABEL_PLACES = (0.5, 0.58, 0.42, 0.66, 0.34, 0.74, 0.26, 0.82, 0.18)  # shares of the way along an edge

LABELS = {
    "conv3": "conv 3x3",
    "conv5": "conv 5x5",
    "dil3": "dilated 3x3",
    "dil5": "dilated 5x5",
    "sep3": "sep 3x3",
    "sep5": "sep 5x5",
    "sep_dil3": "dil sep 3x3",
    "sep_dil5": "dil sep 5x5",
    "avg_pool": "avg pool",
    "max_pool": "max pool",
    "skip": "skip",
}

# Every rule is under .cell, so that a page can hold the drawing as it is.
STYLE = """
  .cell { --page: #ffffff; --box: #eef2f8; --line: #41526b; --in: #dff0e4; --out: #fbecc8; --text: #1c2430;
    --conv: #2866b8; --pool: #a5561c; --skip: #5d6b7d; --join: #b9c2cf }
  @media screen and (prefers-color-scheme: dark) { .cell { --page: #171c24; --box: #263143; --line: #8ea3c2;
    --in: #22402d; --out: #4a3d1a; --text: #e8edf5; --conv: #6fa8f5; --pool: #e09a5c; --skip: #9aa8ba;
    --join: #4a5564 } }
  .cell .box { fill: var(--box); stroke: var(--line); stroke-width: 1.4 }
  .cell .input { fill: var(--in) } .cell .output { fill: var(--out) } .cell .page { fill: var(--page) }
  .cell text { font: 13px system-ui, sans-serif; fill: var(--text) } .cell .title { font-weight: 600; font-size: 15px }
  .cell .label { font-size: 11px; paint-order: stroke; stroke: var(--page); stroke-width: 5px; stroke-linejoin: round }
  .cell .edge { fill: none; stroke-width: 1.8 } .cell .conv, .cell .dil, .cell .sep { stroke: var(--conv) }
  .cell .dil { stroke-dasharray: 5 3 } .cell .pool { stroke: var(--pool) } .cell .skip { stroke: var(--skip) }
  .cell .join { stroke: var(--join) }
"""


@dataclass(frozen=True)
class _Point:
    x: float
    y: float


@dataclass(frozen=True)
class _Area:
    centre: _Point
    width: float
    height: float

    def meets(self, other: _Area) -> bool:
        return (
            abs(self.centre.x - other.centre.x) * 2 < self.width + other.width
            and abs(self.centre.y - other.centre.y) * 2 < self.height + other.height
        )


def cell_svg(cell: Cell, *, title: str) -> str:
    places = _places(cell)
    output = len(places) - 1
    width = max(p.x for p in places) + BOX_WIDTH / 2 + MARGIN
    height = max(p.y for p in places) + BOX_HEIGHT / 2 + MARGIN
    centre_y = (places[0].y + places[1].y) / 2
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="cell" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" role="img" aria-label="{escape(title, quote=True)}">',
        f"<style>{STYLE}</style>",
        f'<rect class="page" width="{width:.0f}" height="{height:.0f}"/>',
        f'<text class="title" x="{MARGIN}" y="{MARGIN}">{escape(title)}</text>',
    ]
    labels = []
    taken = [_Area(place, BOX_WIDTH + 6, BOX_HEIGHT + 4) for place in places]
    for node, edges in enumerate(cell, start=INPUT_NODES):
        parts.append(_curve("join", places[node], places[output], 0, centre_y)[0])
        for number, edge in enumerate(edges):
            path, along = _curve(_family(edge.operation), places[edge.source], places[node], number, centre_y)
            parts.append(path)
            text = LABELS.get(edge.operation, edge.operation)
            label = _free_place(along, text, taken)
            labels.append(
                f'<text class="label" x="{label.x:.1f}" y="{label.y + LABEL_HEIGHT * 0.3:.1f}" text-anchor="middle">'
                f"{escape(text)}</text>"
            )
    names = ["c_k-2", "c_k-1", *map(str, range(INPUT_NODES, output)), "c_k"]
    for node, (place, name) in enumerate(zip(places, names, strict=True)):
        kind = " input" if node < INPUT_NODES else " output" if node == output else ""
        parts.append(
            f'<rect class="box{kind}" x="{place.x - BOX_WIDTH / 2:.1f}" y="{place.y - BOX_HEIGHT / 2:.1f}" '
            f'width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="7"/>'
        )
        parts.append(f'<text class="name" x="{place.x:.1f}" y="{place.y + 4.5:.1f}" text-anchor="middle">{name}</text>')
    return "\n".join([*parts, *labels, "</svg>"]) + "\n"


def _places(cell: Cell) -> list[_Point]:
    """Inputs on the left, each node one column right of its latest source, columns centred; the output on the right."""
    column = [0] * INPUT_NODES
    for edges in cell:
        column.append(1 + max(column[edge.source] for edge in edges))
    column.append(1 + max(column))
    rows = max(max(column.count(c) for c in set(column)), len(cell))
    chain = max(column) + 1 >= MANY_COLUMNS
    step, shift = (NARROW_COLUMN, 0.7) if chain else (COLUMN_WIDTH, 0.22)
    places = []
    seen: dict[int, int] = {}
    for own in column:
        members = column.count(own)
        row = seen[own] = seen.get(own, -1) + 1
        # Members of a column spread over the whole height; a shift by column keeps edges off the boxes between.
        centre = (row + 0.5) * rows / members + (shift if own % 2 and members == 1 else 0)
        places.append(_Point(MARGIN + BOX_WIDTH / 2 + own * step, TITLE_HEIGHT + MARGIN + (centre - 0.2) * ROW_HEIGHT))
    return places


def _curve(family: str, start: _Point, end: _Point, number: int, centre_y: float) -> tuple[str, list[_Point]]:
    """A cubic from box to box and the places for its label; the two edges into a node end slightly apart."""
    x0, y0 = start.x + BOX_WIDTH / 2, start.y
    x1, y1 = end.x - BOX_WIDTH / 2, end.y + (number * 2 - 1) * 6 * (family != "join")
    reach = (x1 - x0) * 0.45
    # Edges that jump over columns bow outwards, away from the boxes they pass.
    bow = 0.0
    if x1 - x0 > COLUMN_WIDTH and family != "join":
        bow = (-36.0 if (y0 + y1) / 2 <= centre_y else 36.0) * (x1 - x0) / (2 * COLUMN_WIDTH)
    path = (
        f'<path class="edge {family}" d="M{x0:.1f},{y0:.1f} C{x0 + reach:.1f},{y0 + bow:.1f} '
        f'{x1 - reach:.1f},{y1 + bow:.1f} {x1:.1f},{y1:.1f}"/>'
    )
    corners = ((x0, y0), (x0 + reach, y0 + bow), (x1 - reach, y1 + bow), (x1, y1))
    return path, [_on_curve(corners, share) for share in LABEL_PLACES]


def _on_curve(corners: tuple[tuple[float, float], ...], share: float) -> _Point:
    weights = ((1 - share) ** 3, 3 * share * (1 - share) ** 2, 3 * share**2 * (1 - share), share**3)
    x, y = (sum(weight * corner[axis] for weight, corner in zip(weights, corners, strict=True)) for axis in (0, 1))
    return _Point(x, y)


def _free_place(along: list[_Point], text: str, taken: list[_Area]) -> _Point:
    """The first place on the curve where the label covers neither a box nor another label; else the middle."""
    for place in along:
        area = _Area(place, LETTER_WIDTH * len(text) + 4, LABEL_HEIGHT)
        if not any(area.meets(other) for other in taken):
            taken.append(area)
            return place
    return along[0]


def _family(operation: str) -> str:
    if operation.startswith(("dil", "sep_dil")):
        return "dil"
    if operation.endswith("pool"):
        return "pool"
    return "skip" if operation == "skip" else "conv"
