"""The skeleton of a network (the paper's figure 1): stem, groups M1, M2, M3 of normal cells, the reduce cells, head.

Of a stream network: stem, the blocks of each stage, reductions, head.
"""

from __future__ import annotations

from dataclasses import dataclass

from sphynx.space.account import account_of
from sphynx.space.design import Design
from sphynx.space.stream import StreamDesign, account_of_stream
from sphynx.space.tally import Shape
from sphynx.svg.charts import WIDE
from sphynx.svg.drawing import Box, Drawing, Line, Text
from sphynx.units import short_number

BLOCK_WIDTH, BLOCK_HEIGHT, CAPTION = 88.0, 50.0, 34.0
GAP, WIDEST_GAP = 14.0, 44.0  # the paper's seven blocks fit one line of a page


@dataclass(frozen=True)
class Block:
    name: str
    detail: str
    output: Shape
    relus: int
    role: str
    cells: int = 1


def blocks_of(design: Design | StreamDesign) -> list[Block]:
    return _blocks_of_stream(design) if isinstance(design, StreamDesign) else _blocks_of_cells(design)


def _blocks_of_stream(design: StreamDesign) -> list[Block]:
    rows = {row.name: row for row in account_of_stream(design).rows}
    blocks = []
    for number, (stage, inside) in enumerate(zip(design.stages, design.maps, strict=True)):
        name = f"reduce {number}" if number else "stem"
        blocks.append(Block(name, rows[name].kind, inside, 0, "s1" if number else "s6"))
        if stage.channels:
            relus = sum(stage.channels) * inside.height * inside.width
            low, high = min(stage.channels), max(stage.channels)
            span = f"C = {low}" if low == high else f"C = {low}..{high}"
            many = len(stage.channels)
            blocks.append(Block(f"{many} block{'s' if many > 1 else ''}", span, inside, relus, "s0", many))
    blocks.append(Block("head", "mean, linear", rows["head"].output, 0, "s6"))
    return blocks


def _blocks_of_cells(design: Design) -> list[Block]:
    """Groups are numbered as the paper does; one with no cell (M1 = 0 where cell 0 reduces) is left out."""
    rows = account_of(design).rows
    stem, cells, head = rows[0], rows[1:-1], rows[-1]
    blocks = [Block("stem", stem.kind, stem.output, stem.relus, "s6")]
    group, start = 1, 0
    for position in (*design.reduce_positions, design.depth):
        if position > start:
            members = cells[start:position]
            relus = sum(cell.relus for cell in members)
            blocks.append(Block(f"M{group} = {len(members)}", "normal", members[-1].output, relus, "s0", len(members)))
        if position < design.depth:
            cell = cells[position]
            blocks.append(Block(f"cell {position}", "reduce", cell.output, cell.relus, "s1"))
        group, start = group + 1, position + 1
    blocks.append(Block("head", "pool, linear", head.output, head.relus, "s6"))
    return blocks


def draw_skeleton(design: Design | StreamDesign, *, width: float = WIDE) -> Drawing:
    """From left to right, continued on further lines where the width asks for it."""
    blocks = blocks_of(design)
    per_line = max(2, int((width - 12 + GAP) // (BLOCK_WIDTH + GAP)))
    lines = -(-len(blocks) // per_line)
    per_line = -(-len(blocks) // lines)  # even lines
    room = (width - 24 - per_line * BLOCK_WIDTH) / max(per_line - 1, 1)
    gap = max(GAP, min(room, WIDEST_GAP))
    height = lines * (BLOCK_HEIGHT + CAPTION + 22) + 4
    drawing = Drawing(width, height, f"skeleton of {design.name or 'the network'}")
    for number, block in enumerate(blocks):
        line, place = divmod(number, per_line)
        x, y = 8 + place * (BLOCK_WIDTH + gap), 8 + line * (BLOCK_HEIGHT + CAPTION + 22)
        if place:
            middle = y + BLOCK_HEIGHT / 2
            drawing.add(Line(((x - gap + 2, middle), (x - 4, middle)), "muted", 1.5))
            drawing.add(Line(((x - 8, middle - 4), (x - 3, middle), (x - 8, middle + 4)), "muted", 1.5))
        elif line:  # comes from the line above
            drawing.add(Line(((x - 6, y - 14), (x + 14, y - 14), (x + 14, y - 4)), "muted", 1.5))
            drawing.add(Line(((x + 10, y - 8), (x + 14, y - 3), (x + 18, y - 8)), "muted", 1.5))
        _draw_block(drawing, block, x, y)
    return drawing


def _draw_block(drawing: Drawing, block: Block, x: float, y: float) -> None:
    tip = f"{block.name} ({block.detail}): output {block.output}, {block.relus:,} ReLUs"
    for behind in range(min(block.cells, 3) - 1, 0, -1):  # a stack of cells
        drawing.add(Box(x + 3 * behind, y - 3 * behind, BLOCK_WIDTH, BLOCK_HEIGHT, block.role, 7, True))
    drawing.add(Box(x, y, BLOCK_WIDTH, BLOCK_HEIGHT, "paper", 7))
    drawing.add(Box(x, y, BLOCK_WIDTH, BLOCK_HEIGHT, block.role, 7, True, tip))
    centre = x + BLOCK_WIDTH / 2
    drawing.add(Text(centre, y + 21, block.name, "ink", "middle", 13, bold=True))
    drawing.add(Text(centre, y + 38, block.detail, "muted", "middle", 11))
    drawing.add(Text(centre, y + BLOCK_HEIGHT + 15, str(block.output), "muted", "middle", 11))
    relus = f"{short_number(block.relus)} ReLUs" if block.relus else "no ReLUs"
    drawing.add(Text(centre, y + BLOCK_HEIGHT + 30, relus, "muted", "middle", 11))
