"""`sphynx recipes`: lists, copies and checks the recipes of training, cell search and placement."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sphynx.cli.group import VerbGroup
from sphynx.cli.options import Json
from sphynx.cli.output import print_json, print_table
from sphynx.errors import InputError

if TYPE_CHECKING:
    from sphynx.config import Shelf

Stage = Literal["training", "search", "placement"]

app = typer.Typer(cls=VerbGroup, invoke_without_command=True, rich_markup_mode=None)


def _shelves() -> tuple[Shelf[Any], ...]:
    from sphynx.search.placement.recipe import PLACEMENT_SHELF
    from sphynx.search.recipe import SHELF as SEARCH_SHELF
    from sphynx.train.recipe import SHELF as TRAINING_SHELF

    return TRAINING_SHELF, SEARCH_SHELF, PLACEMENT_SHELF


@app.callback()
def recipes(context: typer.Context) -> None:
    """Recipes: list, copy, check."""
    if context.invoked_subcommand is None:
        list_recipes()


@app.command("ls")
def list_recipes(as_json: Json = False) -> None:
    """List the recipes that come with Sphynx. Where a stage is given, a name may leave out `search-` or `placement-`.

    Example:

      sphynx recipes ls
    """
    recipes = [(shelf.stage, name, shelf.load(name)) for shelf in _shelves() for name in shelf.names()]
    if as_json:
        print_json({name: {"stage": stage, **recipe.to_json()} for stage, name, recipe in recipes})
        return
    print_table(
        "Recipes",
        ["stage", "name", ">epochs", ">batch", ">rate", "schedule", ">drop-path", ">auxiliary", "more"],
        ([stage, name, *_columns(recipe)] for stage, name, recipe in recipes),
        note="Copy one to change it: sphynx recipes cp fast my.toml",
    )


@app.command("cp")
def copy_recipe(
    name: Annotated[str, typer.Argument(help="A name from `sphynx recipes ls`.")],
    to: Annotated[Path, typer.Argument(help="The new file.")],
) -> None:
    """Copy a recipe to a file of your own.

    Examples:

      sphynx recipes cp fast my.toml

      sphynx recipes cp search-fast my-search.toml
    """
    if to.exists():
        raise InputError("the file already exists", where=str(to), remedy="Give another name.")
    to.write_text(_shelf_of(name, None).text(name))
    typer.echo(f"wrote {to}", err=True)


@app.command("validate")
def validate(
    files: Annotated[list[str], typer.Argument(help="Recipe files, or names.")],
    stage: Annotated[
        Stage | None,
        typer.Option("--stage", help="Stage of the files; names imply it."),
    ] = None,
) -> None:
    """Check recipes; all errors of a file are reported at once.

    Examples:

      sphynx recipes validate my.toml

      sphynx recipes validate my-search.toml --stage search
    """
    for file in files:
        _shelf_of(file, stage).load(file)
        typer.echo(f"{file}: valid")


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
