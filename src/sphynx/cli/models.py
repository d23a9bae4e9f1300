"""`sphynx models`: the trained networks that come with Sphynx, and their cards."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from sphynx.cli.group import Verbs
from sphynx.cli.options import Json
from sphynx.cli.output import count, print_json, print_table, say_next
from sphynx.units import percent, short_number

app = Verbs(invoke_without_command=True)

Folder = Annotated[Path | None, typer.Option("--folder", help="Folder of the models. [default: in the package]")]


@app.callback()
def models(context: typer.Context) -> None:
    """Trained models: list, show, rebuild."""
    if context.invoked_subcommand is None:
        list_models()


@app.command("ls")
def list_models(folder: Folder = None, as_json: Json = False) -> None:
    """List the models that come with Sphynx. Their names can be given wherever a run folder can.

    Example:

      sphynx models ls
    """
    from sphynx.api.models import list_models, load_card
    from sphynx.zoo.shipped import INSTALL

    cards = [load_card(name, folder) for name in list_models(folder)]
    if as_json:
        print_json(cards)
        return
    print_table(
        "Models",
        ["name", "data", ">test accuracy", ">ReLUs", ">parameters"],
        (
            [c["name"], c["data"]["name"], percent(_accuracy(c)), count(c["relus"]), short_number(c["parameters"])]
            for c in cards
        ),
        note="" if cards else f"{folder} contains no models." if folder else f"No models are installed: {INSTALL}.",
    )
    if cards and folder is None:
        say_next("sphynx", "app", "--open", "--local", cards[0]["name"])


@app.command("show")
def show_model(
    name: Annotated[str, typer.Argument(help="A name from `sphynx models ls`.")],
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Show a model's card: how it was trained, how good it is, where it comes from.

    Example:

      sphynx models show sphynx-cifar100-25k
    """
    from sphynx.api.models import load_card

    card = load_card(name, folder)
    if as_json:
        print_json(card)
        return
    print_table(card["name"], ["", ""], _rows(card))


@app.command("rebuild")
def rebuild(
    name: Annotated[str, typer.Argument(help="A name from `sphynx models ls`.")],
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Run the chain in this folder, which has what it needs.")
    ] = None,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Print the chain that a model comes from, from data to weights; with -o run it and compare accuracies.

    Examples:

      sphynx models rebuild stream-chest-xray-11k

      sphynx models rebuild stream-chest-xray-11k -o rebuilt
    """
    from sphynx.api.rebuilding import load_chain, rebuild_model

    if out is not None:
        made = rebuild_model(name, out, folder, lambda line: typer.echo(f"$ {line}", err=True))
        if as_json:
            print_json(made.to_json())
            return
        accuracies = [percent(made.accuracy_on_card), percent(made.accuracy)]
        where = [f"{made.minutes:.1f}", made.device, (made.commit or "unknown")[:12], made.run]
        columns = [">on the card", ">rebuilt", ">minutes", "device", "commit", "run"]
        print_table(f"{name}: test accuracy", columns, [[*accuracies, *where]])
        return
    chain = load_chain(name, folder)
    if as_json:
        print_json(chain.to_json())
        return
    for need in chain.needs:
        typer.echo(f"# {need}")
    for words in chain.commands:
        typer.echo(shlex.join(words))
    typer.echo(f"# makes {chain.makes}")
    print_table(
        "Trainings on the way",
        ["network", ">accuracy", ">seed", ">minutes", "device", "commit", "weights", "taught by"],
        (
            [
                *(one.network, percent(one.accuracy), str(one.seed), f"{one.minutes:.1f}", one.device, one.commit[:12]),
                *(_shortened(one.weights), ", ".join(map(_shortened, one.taught_by)) or "labels"),
            ]
            for one in chain.trainings
        ),
    )


def _shortened(digest: str) -> str:
    return digest.removeprefix("file:")[:12]


def _accuracy(card: dict[str, Any]) -> float:
    """The accuracy evaluated again on a CPU, which `sphynx eval NAME` finds there too; otherwise the training's."""
    found: float = (card["evaluation"] or card)["accuracy"]
    return found


def _rows(card: dict[str, Any]) -> list[list[str]]:
    recipe, data, made = card["recipe"], card["data"], card["provenance"]
    rows = [["warning", card["warning"]]] if "warning" in card else []
    top5 = f" (top 5 {percent(card['top5'])})" if data["classes"] > 5 else ""
    rows += [["test accuracy", f"{percent(card['accuracy'])}{top5}, final epoch, on {card['device']}"]]
    evaluation = card["evaluation"]
    if evaluation is not None:
        rows.append(["evaluated again", f"{percent(evaluation['accuracy'])}, fp32, on {evaluation['device']}"])
        rows += _score_rows(evaluation.get("scores"))
    rows += [
        ["test images", count(card["test_images"])],
        ["data", f"{data['name']}, {count(data['train'])} training images, {data['classes']} classes"],
        ["terms of the data", card["terms"]],
        ["ReLUs", count(card["relus"])],
        ["parameters", count(card["parameters"])],
        ["seed", str(card["seed"])],
    ]
    seeds = card["all_seeds"]
    if seeds is not None:
        each = ", ".join(f"{s}: {percent(a)}" for s, a in zip(seeds["seeds"], seeds["accuracies"], strict=True))
        rows.append(["all seeds", each])
    rows += [
        ["recipe", ", ".join(f"{key} {value}" for key, value in recipe.items())],
        ["teacher", teacher_name(card["teacher"])],
        ["training", f"{card['minutes']:.1f} minutes on {card['device']}"],
        ["made by", f"sphynx {made['sphynx']}, source {made['source_sha256']}, commit {made['commit']}"],
        ["with", ", ".join(f"{name} {version}" for name, version in made["packages"].items() if version)],
        ["command", " ".join(made["command"])],
    ]
    return rows


def _score_rows(found: Any) -> list[list[str]]:
    """The scores of a network of few classes; older cards have none."""
    from sphynx.train.scores import Scores

    scores = None if found is None else Scores.from_json(found, where="card")
    if scores is None or not scores.classes:
        return []
    balanced, mcc = scores.balanced_accuracy, scores.mcc
    rows = [
        [
            "balanced accuracy",
            f"{percent(balanced.value)} ({percent(balanced.low, 1)} to {percent(balanced.high, 1)} at 95 %)",
        ],
        ["MCC", f"{mcc.value:.3f} ({mcc.low:.3f} to {mcc.high:.3f} at 95 %)"],
    ]
    for one in scores.classes:
        found_, spared = one.sensitivity, one.specificity
        said = f"sensitivity {percent(found_.value, 1)} ({percent(found_.low, 1)} to {percent(found_.high, 1)}), "
        rows.append(
            [
                one.name,
                f"{said}specificity {percent(spared.value, 1)} ({percent(spared.low, 1)} to {percent(spared.high, 1)})",
            ]
        )
    return rows


def teacher_name(design: dict[str, Any] | None) -> str:
    if design is None:
        return "none"
    return str(design["name"] or design["format"]).partition("/")[0].removeprefix("sphynx-")
