"""`sphynx reduce`: takes a trained network down to a budget of ReLUs."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sphynx.cli import options as opt
from sphynx.cli.output import count, print_json, print_table
from sphynx.reduce.settings import Backend, Method, ReduceSettings
from sphynx.train.recipe import AUTO, Recipe

if TYPE_CHECKING:
    from sphynx.reduce.results import ReduceResult

_MEANINGS = {field.name: str(field.metadata["meaning"]) for field in fields(ReduceSettings)}
_OTHERS = ", ".join(name for name in _MEANINGS if name not in ("method", "backend", "search_epochs"))


def reduce(
    network: Annotated[str, typer.Argument(help="A trained run folder, its model.safetensors, or a model's name.")],
    relu_budget: Annotated[str, typer.Option("--relu-budget", help="50k, 1.2M or 51200.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The run folder.")],
    data: opt.KnownData = "",
    method: Annotated[Method, typer.Option("--method", help=f"{_MEANINGS['method']}.")] = "auto",
    backend: Annotated[Backend, typer.Option("--backend", help=f"{_MEANINGS['backend']}.")] = "gmw",
    search_epochs: Annotated[
        int, typer.Option("--search-epochs", min=0, help=f"{_MEANINGS['search_epochs']}.")
    ] = ReduceSettings.search_epochs,
    recipe: opt.RecipeOption = AUTO,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help=f"Another value: training.epochs=20 of the recipe, or one of {_OTHERS}."),
    ] = None,
    seed: opt.Seed = 0,
    resume: opt.ResumeOption = "never",
    device: opt.DeviceOption = AUTO,
    verbose: opt.Verbose = False,
    quiet: opt.Quiet = False,
    as_json: opt.Json = False,
) -> None:
    """Take a trained network down to a budget of ReLUs: a method chooses which stay, then the network learns from the
    original's answers. Labels are only used for the accuracies that are printed.

    Examples:

      sphynx reduce runs/digits --relu-budget 300 -o runs/fewer

      sphynx reduce runs/resnet18 --data cifar100 --relu-budget 50k --method channels -o runs/reduced

      sphynx reduce runs/resnet18 --relu-budget 25k --method snl --search-epochs 60 -o runs/snl

      sphynx reduce runs/digits --relu-budget 300 -o runs/fewer --resume auto
    """
    from sphynx.api.reducing import reduce_network

    voice = opt.voice_for(verbose, quiet, as_json)

    def started(name: str, chosen: Recipe) -> None:
        voice.say(f"recipe {name}, epochs: {chosen.epochs}", stage="reduce")

    given = {"backend": backend, "search_epochs": search_epochs, **opt.parse_settings(settings, example="rounds=4")}
    result = reduce_network(
        network,
        data or None,
        relu_budget,
        out,
        method=method,
        recipe=recipe,
        settings=given,
        seed=seed,
        resume=resume == "auto",
        device=device,
        progress=voice,
        started=started,
    )
    if as_json:
        print_json(result.to_json())
    else:
        _print(result, out)


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
            ">as the original",
            ">held out",
            ">minutes",
        ],
        (
            [
                one.method,
                *map(count, (one.counts.relus, one.counts.comparisons, one.counts.squares, one.counts.truncations)),
                f"{one.accuracy:.2%}",
                f"{one.agreement:.2%}",
                "-" if one.held_out_agreement is None else f"{one.held_out_agreement:.2%}",
                f"{one.minutes:.1f}",
            ]
            for one in result.tried
        ),
        note=f"{kept}the original has {count(result.original_relus)} ReLUs and {result.original_accuracy:.2%}",
    )
