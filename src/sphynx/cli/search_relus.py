"""`sphynx search relus`: finds how many rectified channels each block of a stream network gets of a budget."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sphynx.cli.options import Images, Output
from sphynx.cli.output import count, print_json, print_table, say_next
from sphynx.cli.record_flags import with_record_flags
from sphynx.search.settings import AllocationSettings
from sphynx.units import percent

if TYPE_CHECKING:
    from sphynx.search.allocation.allocate import AllocationResult


@with_record_flags
def search_relus(
    design: Annotated[Path, typer.Argument(help="A stream's design.json: its stages, widths and number of blocks.")],
    images: Images,
    settings: AllocationSettings,
    output: Output,
) -> None:
    """Search where the ReLUs of a stream network go, within a budget of ReLUs or of seconds online.

    The new design.json goes to the run folder.

    Examples:

      sphynx search relus stream.json --data cifar100 -o runs/allocation

      sphynx search relus stream.json --data cifar100 --method gates --factor 3 -o runs/gates

      sphynx search relus stream.json --data cifar100 --recipe taught --training frontier --teacher runs/teacher \
        --views runs/held-out-views -o runs/taught

      sphynx search relus stream.json --data cifar100 --latency-budget 90ms --prices prices.json -o runs/fast
    """
    from sphynx.api import searching

    start = searching.read_stream(design)
    searching.check_placement(settings)
    searching.check_allocation(start, settings)
    voice = output.voice
    settings = replace(settings, progress=voice)
    result = searching.allocate_relus(start, images.open(voice), **vars(settings))
    if output.as_json:
        print_json(result.to_json())
    else:
        _print(result, Path(settings.out))


def _print(result: AllocationResult, out: Path) -> None:
    alone = any(one.accuracy is not None for one in result.allocations)
    print_table(
        f"Allocations: {out / 'design.json'}",
        [
            "name",
            "stages (map:W:C of each block)",
            ">ReLUs",
            ">probability",
            ">held-out accuracy in the search",
            *([">trained alone"] if alone else []),
        ],
        (
            [
                f"{one.name}{' <' if one == result.best else ''}",
                one.stages,
                count(one.relus),
                f"{one.probability:.4f}",
                percent(one.held_out_accuracy),
                *(["" if one.accuracy is None else percent(one.accuracy)] if alone else []),
            ]
            for one in result.allocations
        ),
        note=f"found using {result.method}, within {result.budget:,g} {result.unit}; {result.minutes:.1f} minutes",
    )
    say_next("sphynx", "train", str(out / "design.json"), "--data", "DATA", "--out", f"{out}-trained")
