"""`sphynx search placement`: finds where the reduce cells of a design go."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sphynx.cli.options import Images, Output
from sphynx.cli.output import print_json, print_table, say_next
from sphynx.cli.record_flags import with_record_flags
from sphynx.search.settings import PlacementSettings
from sphynx.units import percent

if TYPE_CHECKING:
    from sphynx.search.placement.place import PlacementResult


@with_record_flags
def search_placement(
    design: Annotated[Path, typer.Argument(help="A design.json, as `sphynx plan -o` writes it.")],
    images: Images,
    settings: PlacementSettings,
    output: Output,
) -> None:
    """Place the reduce cells (Algorithm 1): one network per placement, sampled by a distribution that is learned.

    Placements with more ReLUs than the given design (possible with odd image sizes) are left out. The new design.json
    goes to the run folder.

    Examples:

      sphynx search placement design.json --data digits --recipe smoke --candidates paper -o runs/place

      sphynx search placement design.json --data cifar100 --exhaustive fast -o runs/place

      sphynx search placement design.json --data cifar100 --set estimator=losses -o runs/place
    """
    from sphynx.api import searching
    from sphynx.report.verb_figures import draw_placement

    start, _ = searching.read_start(design), searching.check_placement(settings)
    voice, out = output.voice, Path(settings.out)
    settings = replace(settings, progress=voice)
    result = searching.place_reduce_cells(start, images.open(voice), **vars(settings))
    draw_placement(result, out / "figures" / "placement.svg")
    if output.as_json:
        print_json(result.to_json())
    else:
        _print(result, out)


def _print(result: PlacementResult, out: Path) -> None:
    from sphynx.search.placement.doubt import doubt

    final, alone = result.beta_hat[-1], result.accuracy
    why = doubt(result.placements, result.beta_hat)
    inconclusive = f"; inconclusive: {why}" if why else ""
    print_table(
        f"Placements: {out / 'design.json'}",
        ["reduce cells at", ">beta", ">held-out accuracy in the search", *([">trained alone"] if alone else [])],
        (
            [
                f"{place}{' <' if place == result.best else ''}",
                f"{final[number]:.4f}",
                percent(result.held_out_accuracy[number]),
                *([percent(alone[number])] if alone else []),
            ]
            for number, place in enumerate(result.placements)
        ),
        note=f"figure: {out / 'figures' / 'placement.svg'}{inconclusive}",
    )
    say_next("sphynx", "train", str(out / "design.json"), "--data", "DATA", "--out", f"{out}-trained")
