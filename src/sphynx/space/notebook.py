"""Show a design or a genotype in a notebook: the cells as pictures, the counts as a small table."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from sphynx.space.cell import Cell
from sphynx.space.cell_svg import cell_svg


def cells_html(name: str, normal: Cell, reduce: Cell) -> str:
    """Draw both cells."""
    return "".join(
        cell_svg(cell, title=f"{name or 'cells'}: {kind}") for kind, cell in (("normal", normal), ("reduce", reduce))
    )


def table_html(rows: Mapping[str, str]) -> str:
    """Lay facts out, a row each."""
    cells = "".join(f"<tr><th>{escape(key)}</th><td>{escape(value)}</td></tr>" for key, value in rows.items())
    return f"<table>{cells}</table>"
