"""`sphynx reduce`: takes a trained network down to a budget of ReLUs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sphynx.cli import options as opt
from sphynx.cli.output import count, print_json, print_table, say_next
from sphynx.cli.record_flags import meaning_of, with_record_flags
from sphynx.reduce.settings import Backend, ReduceSettings, ReductionSettings
from sphynx.units import percent

if TYPE_CHECKING:
    from sphynx.reduce.results import ReduceResult


@with_record_flags
def reduce(
    network: Annotated[
        str,
        typer.Argument(help="A trained run folder, its model.safetensors, a model's name, or an .onnx or .pt2 file."),
    ],
    settings: ReductionSettings,
    output: opt.Output,
    data: opt.KnownData = "",
    backend: Annotated[Backend, typer.Option("--backend", help=f"{meaning_of(ReduceSettings, 'backend')}.")] = "gmw",
    search_epochs: Annotated[
        int, typer.Option("--search-epochs", min=0, help=f"{meaning_of(ReduceSettings, 'search_epochs')}.")
    ] = ReduceSettings.search_epochs,
) -> None:
    """Reduce a trained network to a budget of ReLUs: a method chooses which ones stay, then the network learns from the
    original's answers. Labels are used only for the accuracies that are printed.

    Examples:

      sphynx reduce runs/digits --relu-budget 300 -o runs/fewer

      sphynx reduce runs/resnet18 --data cifar100 --relu-budget 50k --method channels -o runs/reduced

      sphynx reduce runs/resnet18 --relu-budget 25k --method snl --search-epochs 60 -o runs/snl

      sphynx reduce runs/resnet18 --latency-budget 200ms --link lan --method channels -o runs/fast

      sphynx reduce mine.onnx --data pictures --mean 0.5 --std 0.25 --relu-budget 50k -o runs/reduced

      sphynx reduce runs/digits --relu-budget 300 -o runs/fewer --resume
    """
    from sphynx.api.reducing import reduce_network

    values = {"backend": backend, "search_epochs": search_epochs, **settings.settings}
    settings = replace(settings, settings=values, progress=output.voice)
    result = reduce_network(network, data or None, **vars(settings))
    if output.as_json:
        print_json(result.to_json())
    else:
        _print(result, Path(settings.out))


def _print(result: ReduceResult, out: Path) -> None:
    kept = f"kept: {result.best.method}; " if len(result.tried) > 1 else ""
    print_table(
        f"Reduced: {out}",
        [
            "method",
            ">ReLUs",
            ">comparisons",
            ">squares",
            ">truncations",
            ">test accuracy",
            ">agrees with the original",
            ">held out",
            ">minutes",
        ],
        (
            [
                one.method,
                *map(count, (one.counts.relus, one.counts.comparisons, one.counts.squares, one.counts.truncations)),
                percent(one.accuracy),
                percent(one.agreement),
                percent(one.held_out_agreement),
                f"{one.minutes:.1f}",
            ]
            for one in result.tried
        ),
        note=f"{kept}the original has {count(result.original_relus)} ReLUs and {percent(result.original_accuracy)}",
    )
    say_next("sphynx", "compile", str(out), "-o", f"compiled/{out.name}")
