"""Options that verbs of `sphynx bench` share: networks, protocols and links, what is measured, where numbers go."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sphynx.cli.options import parse_backends
from sphynx.cli.output import print_json, print_table
from sphynx.errors import InputError, SphynxError
from sphynx.space.choices import ConvStack

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sphynx.bench.private import Network
    from sphynx.bench.private_models import Model
    from sphynx.bench.results import BenchRun, Machine, Source, ThroughputRun
    from sphynx.program.backends import Backend
    from sphynx.program.cost.link import Link
    from sphynx.program.security import Reveal, Security
    from sphynx.run.progress import Voice

Programs = Annotated[list[str] | None, typer.Argument(help="Compiled folders, or names of models.")]
Untrained = Annotated[
    str,
    typer.Option(
        "--untrained", help="Networks with random weights: ReLU counts or designs, such as 25.6k,51.2k,design.json."
    ),
]
Backends = Annotated[str, typer.Option("--backend", help="gc, gmw or both.")]
Links = Annotated[
    str, typer.Option("--link", help="loopback, lan, wan, or a round trip and a bandwidth, such as 20ms,200mbit.")
]
UntrainedStack = Annotated[
    ConvStack, typer.Option("--conv-stack", help="Structure of conv3 and conv5 in --untrained networks.")
]
Repeat = Annotated[int, typer.Option("--repeat", min=1, help="Medians are over this many inferences.")]


def links_for(text: str) -> dict[str, Link | None]:
    """Loopback is what it is; the others are emulated."""
    from sphynx.program.cost.link import parse_links

    return {each.name: None if each.name == "loopback" else each for each in parse_links(text)}


def sizes_in(text: str) -> list[str]:
    """List untrained networks, each a number of ReLUs, or a design's file, as its user wrote it."""
    return [name.strip() for name in text.split(",") if name.strip()]


def models_for(
    programs: list[str] | None, untrained: str, conv_stack: ConvStack, folder: Path, voice: Voice
) -> list[Model]:
    """Untrained networks are compiled into the folder."""
    names = sizes_in(untrained)
    if not programs and not names:
        raise InputError("there is nothing to measure", remedy="Name compiled folders, or use --untrained 25.6k.")
    from sphynx.bench.private_models import compiled_model, untrained_model

    models = [compiled_model(program, voice.say) for program in programs or []]
    for number, name in enumerate(names):
        voice.say(f"compiling {name}")
        models.append(untrained_model(name, conv_stack, folder / f"untrained-{number}"))
    return models


def parse_securities(text: str, backends: Sequence[Backend]) -> list[Security]:
    """Kinds of security, each offered by one of the backends."""
    from sphynx.program.security import require_mode

    best: Backend = "gc" if "gc" in backends else backends[0]  # the one that offers all kinds
    return [require_mode(name, best, where="--security") for name in sizes_in(text)]


def parse_reveals(text: str) -> list[Reveal]:
    from sphynx.program.security import require_reveal

    return [require_reveal(name) for name in sizes_in(text)]


def describe_run() -> tuple[Machine, Source]:
    """Call it before measuring: the load should be the others'."""
    from sphynx.bench.machine import describe_machine
    from sphynx.bench.results import Source
    from sphynx.protocol.channel import WIRE_VERSION
    from sphynx.run.environment import describe_environment

    return describe_machine(), replace(Source.from_json(describe_environment()), wire=WIRE_VERSION)


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
        raise SphynxError(
            "a private result differs from the integer program's",
            where=where,
            remedy="This is a bug: please report it with the output of sphynx doctor --json.",
        )


def measure(
    programs: list[str] | None,
    untrained: str,
    backend: str,
    link: str,
    repeat: int,
    conv_stack: ConvStack,
    folder: Path,
    voice: Voice,
    *,
    batch: int = 1,
    passes: int = 1,
    plain: bool = False,
    weight_memory_bytes: int | None = None,
    security: str = "semi-honest",
    reveal: str = "logits",
    ot: str = "auto",
    network: Network | None = None,
) -> BenchRun:
    """`network`: what lies between the parties; emulated links on this machine unless it is given."""
    from sphynx.program.extensions import check_extension

    backends, links = parse_backends(backend, "--backend"), links_for(link)
    securities, reveals = parse_securities(security, backends), parse_reveals(reveal)
    extension = check_extension(ot, where="--ot")
    made = describe_run()
    models = models_for(programs, untrained, conv_stack, folder, voice)
    from sphynx.bench.private import emulated, measure_private
    from sphynx.bench.private_parties import plain_channel
    from sphynx.bench.results import BenchRun
    from sphynx.service.local import make_local_keys

    open_channel = plain_channel if plain else make_local_keys(folder / "keys").open_channel
    rows = measure_private(
        models,
        backends,
        links,
        repeats=repeat,
        batch=batch,
        passes=passes,
        open_channel=open_channel,
        transport=("plain" if plain else "TLS 1.3") + (", namespaces" if network else ""),
        progress=voice.say,
        weight_memory_bytes=weight_memory_bytes,
        securities=securities,
        reveals=reveals,
        ot=extension,
        network=network or emulated,
    )
    return BenchRun(*made, rows)


def print_rows(title: str, run: BenchRun) -> None:
    from sphynx.bench.tables import PRIVATE_COLUMNS, SECURITY_COLUMNS, private_rows, security_rows

    first = run.rows[0]
    note = f"medians of {first.repeats}; {first.transport}; {machine_words(run)}; x: relative to the clear"
    if any(row.plaintext_s is None for row in run.rows):
        note += "; -: not timed in the clear, which needs the run's design.json in the compiled folder"
    print_table(title, PRIVATE_COLUMNS, private_rows(run.rows), note=note)
    if len({row.security for row in run.rows}) > 1:
        print_table("by security", SECURITY_COLUMNS, security_rows(run.rows), note="CPU: both parties; disk: a bundle")
