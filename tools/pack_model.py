"""Pack a finished run as a model of the distribution sphynx-models: `python -m tools.pack_model RUN --name NAME`.

    sphynx_models/NAME/   model.safetensors (8-bit kernels)   design.json   normalisation.json (with the class names)
                          card.json: how it was trained, how good it is, where it comes from
                          program/: made by `sphynx compile NAME --derivable`, after packing

A card's numbers are those that the run itself wrote down; nothing is measured when it is packed.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from sphynx.data.catalogue import CATALOGUE
from sphynx.errors import InputError
from sphynx.network.build import AnyNetwork
from sphynx.network.stored import NORMALISATION, load_normalisation
from sphynx.network.trained import count_parameters, load_model, save_model
from sphynx.space.artifact import CARD, CONFIGURATION, MODEL
from sphynx.train.job import DATA_CONTENT
from sphynx.zoo.chain import CHAIN
from sphynx.zoo.shipped import FORMAT, SHIPPED, read_object
from tools.command import run as run_command
from tools.pack_chain import ENVIRONMENT, read_chain, require_commit

MAX_BYTES = 24_000_000  # of one model's weights: they travel with the package


def pack_run(
    run: Annotated[Path, typer.Argument(help="The folder of one finished training run.")],
    name: Annotated[str, typer.Option("--name", help="Lower-case letters, digits, dots and dashes.")],
    evaluation: Annotated[
        Path | None, typer.Option("--evaluation", help="The output of `sphynx eval RUN --device cpu --json`.")
    ] = None,
    folder: Annotated[Path, typer.Option("--folder", help="Folder of the models.")] = SHIPPED,
    terms: Annotated[
        str, typer.Option("--terms", help="Terms and attribution of data that Sphynx does not know by name.")
    ] = "",
    data: Annotated[
        str, typer.Option("--data", help="What the data are called on the card. [default: as the run has them]")
    ] = "",
    warning: Annotated[str, typer.Option("--warning", help="What the model is not for; its card shows it first.")] = "",
    teachers: Annotated[
        list[Path] | None, typer.Option("--teacher", help="The run of a teacher, or of a teacher's. May be repeated.")
    ] = None,
    commands: Annotated[
        Path | None,
        typer.Option(
            "--commands",
            help="A file of all commands from the data to the weights, one a line; lines that begin with # say what "
            "has to be there before. [default: those that the runs recorded]",
        ),
    ] = None,
    makes: Annotated[
        str, typer.Option("--makes", help="The folder in which these commands leave the run. [default: RUN]")
    ] = "",
) -> None:
    """Pack a finished run as a model: weights in eight bits, and a card with what the run recorded.

    Example:

      python -m tools.pack_model runs/best/seed-0 --name sphynx-cifar100-25k --teacher runs/teacher
    """
    measured = None if evaluation is None else read_object(evaluation, "Make it with sphynx eval --json.")
    packed = pack(
        run,
        name,
        folder,
        measured,
        terms=terms,
        warning=warning,
        data=data,
        teachers=teachers or (),
        commands=commands,
        makes=makes,
    )
    typer.echo(f"wrote {packed}", err=True)


def pack(
    run: Path,
    name: str,
    folder: Path = SHIPPED,
    evaluation: Mapping[str, Any] | None = None,
    *,
    terms: str = "",
    warning: str = "",
    data: str = "",
    teachers: Sequence[Path] = (),
    commands: Path | None = None,
    makes: str = "",
) -> Path:
    """Pack the folder of one finished training run. `evaluation` is what `sphynx eval --json` printed of it;
    `data` is their name on the card;
    `tools.pack_chain` says what the last three are."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]*", name):
        raise InputError(
            f"{name!r} is not a valid name", where="`name`", remedy="Use lower-case letters, digits, dots and dashes."
        )
    target = folder / name
    if target.exists():
        raise InputError("a model of this name already exists", where=str(target), remedy="Give another name.")
    network = load_model(run)
    load_normalisation(run)
    card = _card(run, name, network, evaluation)
    card["data"] |= {"name": data} if data else {}
    card |= {key: said for key, said in (("terms", terms), ("warning", warning)) if said}
    card[CHAIN] = read_chain(run, teachers, commands, makes).to_json()
    temporary = folder / f".{name}.new"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    try:
        save_model(temporary, network, compact=True)
        size = (temporary / MODEL).stat().st_size
        if size > MAX_BYTES:
            raise InputError(
                f"its weights take {size:,} bytes, more than {MAX_BYTES:,}",
                where=str(run),
                remedy="Only small models can be packed: use fewer channels.",
            )
        shutil.copyfile(run / NORMALISATION, temporary / NORMALISATION)
        (temporary / CARD).write_text(json.dumps(card, indent=2) + "\n")
        return temporary.rename(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)  # what was refused leaves nothing behind


def _card(run: Path, name: str, network: AnyNetwork, evaluation: Mapping[str, Any] | None) -> dict[str, Any]:
    result, config, environment = (read_object(run / file) for file in ("result.json", CONFIGURATION, ENVIRONMENT))
    summary = _summary_of_seeds(run)
    require_commit(environment, run)
    try:
        return {
            "format": FORMAT,
            "name": name,
            "accuracy": result["accuracy"],
            "top5": result["top5"],
            "test_images": result["test_images"],
            "evaluation": None if evaluation is None else {k: v for k, v in evaluation.items() if k != "run"},
            "seed": config["seed"],
            "all_seeds": None
            if summary is None
            else {key: summary[key] for key in ("seeds", "accuracies", "mccs") if key in summary},
            "relus": network.design.account.total.relus,
            "parameters": count_parameters(network),
            "data": config["data"] | {key: config[key] for key in (DATA_CONTENT,) if key in config},
            "terms": _terms(config["data"]["name"]),
            "recipe": config["recipe"],
            "teacher": config["teacher"],
            "minutes": result["minutes"],
            "device": result["device"],
            "provenance": {
                key: environment[key] for key in ("sphynx", "source_sha256", "commit", "python", "cuda", "packages")
            }
            | {"command": [_without_folders(word) for word in environment["command"]]},
        }
    except KeyError as error:
        raise InputError(
            f"the run's files do not say {error}", where=str(run), remedy="Give the folder of one finished training."
        ) from None


def _without_folders(word: str) -> str:
    """The last name of a whole path, also of a flag's behind `=`: on other machines the rest says nothing."""
    flag, equals, path = word.rpartition("=")
    return flag + equals + Path(path).name if Path(path).is_absolute() else word


def _terms(data: str) -> str:
    """Say what the publishers of the data allow: whoever passes the weights on has to know."""
    return CATALOGUE[data].terms if data in CATALOGUE else "not known: ask whoever made the data"


def _summary_of_seeds(run: Path) -> dict[str, Any] | None:
    """Read the summary of the seeds that this run is one of, where it is."""
    file = run.resolve().parent / "result.json"
    if not (run.resolve().name.startswith("seed-") and file.is_file()):
        return None
    summary = read_object(file)
    return summary if "accuracies" in summary else None


if __name__ == "__main__":
    run_command(pack_run)
