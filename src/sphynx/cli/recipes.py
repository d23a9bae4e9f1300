"""`sphynx recipes`: lists, copies and checks training recipes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sphynx.cli.design_options import Json
from sphynx.cli.output import print_json, print_table
from sphynx.errors import InputError

app = typer.Typer(help="Training recipes: list, copy, check.", no_args_is_help=True, rich_markup_mode=None)


@app.command("ls")
def list_recipes(as_json: Json = False) -> None:
    """List the recipes that come with Sphynx.

    Example:

      sphynx recipes ls
    """
    from sphynx.train.recipe import load_recipe, recipe_names

    recipes = {name: load_recipe(name) for name in recipe_names()}
    if as_json:
        print_json({name: recipe.to_json() for name, recipe in recipes.items()})
        return
    print_table(
        "Recipes",
        ["name", ">epochs", ">batch", ">rate", "schedule", ">drop-path", ">auxiliary", "precision"],
        (
            [
                name, str(r.epochs), str(r.batch_size), f"{r.learning_rate:g}", r.schedule, f"{r.drop_path:g}",
                f"{r.auxiliary_weight:g}", r.precision,
            ]
            for name, r in recipes.items()
        ),
        note="Copy one to change it: sphynx recipes cp fast my.toml",
    )  # fmt: skip


@app.command("cp")
def copy_recipe(
    name: Annotated[str, typer.Argument(help="A name from `sphynx recipes ls`.")],
    to: Annotated[Path, typer.Argument(help="The new file.")],
) -> None:
    """Copy a recipe to a file of your own.

    Example:

      sphynx recipes cp fast my.toml
    """
    from sphynx.train.recipe import recipe_text

    if to.exists():
        raise InputError("there is such a file already", where=str(to), remedy="Give another name.")
    to.write_text(recipe_text(name))
    typer.echo(f"wrote {to}", err=True)


@app.command("validate")
def validate(files: Annotated[list[str], typer.Argument(help="Recipe files, or names.")]) -> None:
    """Check recipes; every fault of a file is reported at once.

    Example:

      sphynx recipes validate my.toml
    """
    from sphynx.train.recipe import load_recipe

    for file in files:
        load_recipe(file)
        typer.echo(f"{file}: good")
