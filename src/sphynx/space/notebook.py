"""What a notebook shows of a design or a genotype: the cells as pictures, the counts as a small table."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from sphynx.space.account import account_of
from sphynx.space.cell_svg import cell_svg

if TYPE_CHECKING:
    from sphynx.space.design import Design
    from sphynx.space.genotype import Genotype


def genotype_html(genotype: Genotype) -> str:
    name = genotype.name or "cells"
    return "".join(
        cell_svg(cell, title=f"{name}: {kind}")
        for kind, cell in (("normal", genotype.normal), ("reduce", genotype.reduce))
    )


def design_html(design: Design) -> str:
    total = account_of(design).total
    rows = {
        "input": f"{design.image}, {design.classes} classes",
        "channels, depth": f"C = {design.channels}, D = {design.depth}",
        "reduce cells at": ", ".join(map(str, design.reduce_positions)),
        "ReLUs": f"{total.relus:,}",
        "parameters": f"{total.parameters:,}",
        "multiply-accumulates": f"{total.macs:,}",
    }
    cells = "".join(f"<tr><th>{escape(key)}</th><td>{escape(value)}</td></tr>" for key, value in rows.items())
    return f"<table>{cells}</table>{genotype_html(design.genotype)}"
