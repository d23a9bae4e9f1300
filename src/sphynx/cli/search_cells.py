"""`sphynx search cells`: finds normal and reduce cells for a data set."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sphynx.cli.options import Images, Output
from sphynx.cli.output import print_json, print_table, say_next
from sphynx.cli.ranking_table import print_ranking
from sphynx.cli.record_flags import with_record_flags
from sphynx.search.settings import CellSettings
from sphynx.units import percent

if TYPE_CHECKING:
    from sphynx.search.seeds import SearchSummary
    from sphynx.space.cell import Cell
    from sphynx.space.genotype import Genotype


@with_record_flags
def search_cells(images: Images, settings: CellSettings, output: Output) -> None:
    """Search for cells. Weights learn from one half of the training images, the architecture from the other.

    Examples:

      sphynx search cells --data digits --strategy darts --recipe smoke -o runs/cells

      sphynx search cells --data cifar100 --strategy pc-darts --seeds 4 --rank fast --random-cells 4 -o runs/cells

      sphynx search cells --data cifar100 --set hessian=true --set selection=perturbation -o runs/robust

      sphynx search cells --data cifar100 --set nodes=5 --set reduce_at=[0,1] --set supernet=released -o runs/small

      sphynx search cells --data cifar100 --cost conv5=2.8 --cost conv3=1 --cost-weight 0.1 -o runs/cheap
    """
    from sphynx.api import searching

    searching.check_cell_search(settings)
    voice = output.voice
    settings = replace(settings, progress=voice)
    summary = searching.search_cells(images.open(voice), **vars(settings))
    if output.as_json:
        print_json(summary.to_json())
    else:
        _print(summary, Path(settings.out))


def _print(summary: SearchSummary, out: Path) -> None:
    spread = summary.spread
    shared = None if spread.deviation is None else spread.agreement
    print_table(
        "Searches",
        ["strategy", ">seed", ">epochs", ">held-out accuracy of the supernet", "stopped by"],
        (
            [r.strategy, str(r.seed), str(r.epochs), percent(r.held_out_accuracy), r.stopped or "-"]
            for r in summary.results
        ),
        note=f"mean {percent(spread.mean)}, std {percent(spread.deviation)}; "
        f"two seeds' cells share {percent(shared, 0)} of edges"
        if shared is not None
        else "",
    )
    if summary.ranking:
        print_ranking(
            "Ranking by retraining, on held-out training images",
            [(entry.label, [(one.epochs, one.accuracy) for one in entry.trainings]) for entry in summary.ranking],
        )
    print_table(
        f"Cells: {out / 'genotype.json'}",
        [">node", "normal", "reduce"],
        (
            [str(node), normal, reduce]
            for node, (normal, reduce) in enumerate(
                zip(_edges(summary.chosen.normal), _edges(summary.chosen.reduce), strict=True), start=2
            )
        ),
        note=_collapse(summary.chosen),
    )
    say_next("sphynx", "plan", "--cells", str(out / "genotype.json"), "--relu-budget", "25k", "-o", "design.json")


def _collapse(genotype: Genotype) -> str:
    from sphynx.search.stopping import cells_without_convolution

    without = cells_without_convolution(genotype)
    if not without:
        return ""
    return (
        f"no convolution in the {' and the '.join(without)} cell: the search collapsed. Try --strategy gaea, "
        "--set warmup=0.25 or --set selection=perturbation, and compare with --rank fast --random-cells 3."
    )


def _edges(cell: Cell) -> list[str]:
    return [", ".join(f"{edge.operation} {edge.source}" for edge in pair) for pair in cell]
