"""Print what `sphynx inspect` found; `sphynx compile` prints the same of what it refuses."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from sphynx.cli.output import count, print_table
from sphynx.units import bytes_text, seconds_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from sphynx.compiler.inspection import Inspection


def print_inspection(found: Inspection, wording: Callable[[str], str]) -> None:
    """`wording` writes the library's `parameters` as flags."""
    rows = [["inputs", ", ".join(found.inputs)], ["outputs", ", ".join(found.outputs)]]
    if found.image:
        rows.append(["image (channels, height, width)", "x".join(map(str, found.image))])
    if found.costs:
        rows += [
            ["ReLUs", count(found.relus)],
            ["comparisons of max pools", count(found.comparisons)],
            ["signed truncations", count(found.truncations)],
            ["HE products", count(found.he_products)],
            ["ring, guessed", f"{found.ring_bits} bits"],
            ["prepared weights of a server", bytes_text(found.weight_bytes)],
        ]
    rows += [["note", wording(note)] for note in found.notes]
    if rows := [row for row in rows if row[1]]:
        print_table(found.name, ["", ""], rows)
    if found.blockers:
        print_blockers(found, wording)
    if found.costs:
        print_table(
            "Estimated cost of one private inference" + (", without what cannot be compiled" if found.blockers else ""),
            ["ReLUs by", "link", ">offline", ">online", ">offline bytes", ">online bytes"],
            (
                [
                    cost.backend,
                    cost.link,
                    seconds_text(cost.offline_seconds),
                    seconds_text(cost.online_seconds),
                    bytes_text(cost.offline_bytes),
                    bytes_text(cost.online_bytes),
                ]
                for cost in found.costs
            ),
            note=f"both parties on {found.machine}; sphynx estimate says more about a compiled network",
        )


def print_blockers(found: Inspection, wording: Callable[[str], str]) -> None:
    heads = f"These can be had in place of its outputs, with `heads`: {', '.join(found.heads)}" if found.heads else ""
    print_table(
        f"What keeps {found.name} from being compiled",
        ["what", "where", "what to do"],
        ([wording(one.what), one.where, wording(one.remedy)] for one in found.blockers),
        note=wording(heads),
    )
    sys.stdout.flush()
