"""`sphynx recipes`: lists and shows the recipes of training, cell search and placement."""

from __future__ import annotations

import dataclasses
import itertools
import json
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sphynx.cli.group import Verbs
from sphynx.cli.options import Json
from sphynx.cli.output import print_json, print_table

if TYPE_CHECKING:
    from sphynx.config import Shelf

Stage = Literal["training", "search", "placement"]

app = Verbs(invoke_without_command=True)


def _shelves() -> tuple[Shelf[Any], ...]:
    from sphynx.search.placement.recipe import PLACEMENT_SHELF
    from sphynx.search.recipe import SHELF as SEARCH_SHELF
    from sphynx.train.recipe import SHELF as TRAINING_SHELF

    return TRAINING_SHELF, SEARCH_SHELF, PLACEMENT_SHELF


@app.callback()
def recipes(context: typer.Context, as_json: Json = False) -> None:
    """List the recipes that come with Sphynx. Where a stage is given, a name may leave out `search-` or `placement-`.

    Example:

      sphynx recipes
    """
    if context.invoked_subcommand is not None:
        return
    recipes = [(shelf.stage, name, shelf.load(name)) for shelf in _shelves() for name in shelf.names()]
    if as_json:
        print_json({name: {"stage": stage, **recipe.to_json()} for stage, name, recipe in recipes})
        return
    print_table(
        "Recipes",
        ["stage", "name", ">epochs", ">batch", ">rate", "schedule", ">drop-path", ">auxiliary", "more"],
        ([stage, name, *_columns(recipe)] for stage, name, recipe in recipes),
        note="Copy one to change it: sphynx recipes show fast > my.toml",
    )


@app.command("show")
def show(
    name: Annotated[str, typer.Argument(help="A recipe's name, or a TOML file.")],
    stage: Annotated[Stage | None, typer.Option("--stage", help="Stage of a file; names imply it.")] = None,
) -> None:
    """Check a recipe and print it as TOML, with every value: as a start for one of your own.

    All errors of a file are reported at once.

    Examples:

      sphynx recipes show fast > my.toml

      sphynx recipes show my-search.toml --stage search
    """
    shelf = _shelf_of(name, stage)
    recipe, text = shelf.load(name), shelf.text(name)
    for line in itertools.takewhile(lambda line: line.startswith("#"), text.splitlines()):
        typer.echo(line)
    for field in dataclasses.fields(recipe):
        value, meaning = getattr(recipe, field.name), field.metadata.get("meaning")
        if value is not None:
            typer.echo(f"{field.name} = {json.dumps(value)}{f'  # {meaning}' if meaning else ''}")


def _shelf_of(name: str, stage: Stage | None) -> Shelf[Any]:
    shelves = {shelf.stage: shelf for shelf in _shelves()}
    if stage is not None:
        return shelves[stage]
    return next((shelf for shelf in shelves.values() if name in shelf.names()), shelves["training"])


def _columns(recipe: Any) -> list[str]:
    common = [str(recipe.epochs), str(recipe.batch_size), f"{recipe.learning_rate:g}"]
    described = recipe.to_json()
    if "schedule" in described:
        return [*common, recipe.schedule, f"{recipe.drop_path:g}", f"{recipe.auxiliary_weight:g}", recipe.precision]
    supernet = f"supernet C={recipe.channels} D={recipe.depth}" if "depth" in described else "one network per placement"
    return [*common, "cosine", "-", "-", supernet]
