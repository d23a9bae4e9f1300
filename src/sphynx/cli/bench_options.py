"""Flags that the verbs of `sphynx bench` share: which networks, protocols and links, and where the numbers go."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sphynx.cli.design_options import conv_stack_for
from sphynx.cli.output import print_json
from sphynx.errors import InputError, SphynxError

if TYPE_CHECKING:
    from sphynx.bench.private_models import Model
    from sphynx.bench.results import BenchRun, Machine, Source, ThroughputRun
    from sphynx.program.backends import Backend
    from sphynx.program.cost.link import Link

Programs = Annotated[list[str] | None, typer.Argument(help="Compiled folders, or names of models.")]
Untrained = Annotated[
    str,
    typer.Option("--untrained", help="With random weights: numbers of ReLUs, or designs. 25.6k,51.2k,design.json."),
]
ReluBackends = Annotated[str, typer.Option("--relu", help="gc, gmw or both.")]
Links = Annotated[
    str, typer.Option("--link", help="loopback, lan, wan, or a round trip and a bandwidth: 20ms,200mbit.")
]
UntrainedStack = Annotated[
    str, typer.Option("--conv-stack", help="Of --untrained networks: paper, single or pad_once.")
]


def tell(part: str) -> None:
    typer.echo(part, err=True)


def parse_backends(text: str, flag: str) -> list[Backend]:
    chosen = text.split(",")
    if not set(chosen) <= {"gc", "gmw"}:
        raise InputError(f"{text!r} is unknown", where=flag, remedy="Use gc, gmw or gc,gmw.")
    return chosen  # type: ignore[return-value]  # checked above


def links_for(text: str) -> dict[str, Link | None]:
    """Loopback is what it is; the others are emulated."""
    from sphynx.program.cost.link import parse_links

    return {each.name: None if each.name == "loopback" else each for each in parse_links(text)}


def sizes_in(text: str) -> list[str]:
    """Of untrained networks, each a number of ReLUs, or a design's file, as its user wrote it."""
    return [name.strip() for name in text.split(",") if name.strip()]


def models_for(programs: list[str] | None, untrained: str, conv_stack: str, folder: Path) -> list[Model]:
    """Untrained networks are compiled into the folder."""
    stack = conv_stack_for(conv_stack)
    names = sizes_in(untrained)
    if not programs and not names:
        raise InputError("there is nothing to measure", remedy="Name compiled folders, or use --untrained 25.6k.")
    from sphynx.bench.private_models import compiled_model, untrained_model

    models = [compiled_model(program, tell) for program in programs or []]
    for number, name in enumerate(names):
        tell(f"compiling {name}")
        models.append(untrained_model(name, stack, folder / f"untrained-{number}"))
    return models


def describe_run() -> tuple[Machine, Source]:
    """Call it before measuring: the load should be the others'."""
    from sphynx.bench.machine import describe_machine
    from sphynx.bench.results import Source
    from sphynx.run.environment import describe_environment

    return describe_machine(), Source.from_json(describe_environment())


def machine_words(run: BenchRun | ThroughputRun) -> str:
    machine = run.machine
    return (
        f"{machine.architecture}, {machine.cores} cores, load {machine.load_average[0]} at the start; "
        f"sphynx {machine.versions['sphynx']} {run.source}"
    )


def hand_out(results: dict[str, Any], as_json: bool, out: Path | None) -> None:
    """To the file, and as JSON to stdout; the caller prints tables otherwise."""
    if out is not None:
        out.write_text(json.dumps(results, indent=1) + "\n")
    if as_json:
        print_json(results)


def require_exact(run: BenchRun | ThroughputRun, where: str) -> None:
    if not all(row.equal_to_oracle for row in run.rows):
        raise SphynxError("a private result differs from the integer oracle", where=where, remedy="Please report it.")
