"""`sphynx bench`: how fast this machine is at what private inference needs, beside its own bounds."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sphynx.cli.design_options import Json, conv_stack_for
from sphynx.cli.output import print_json, print_table
from sphynx.errors import InputError, SphynxError

if TYPE_CHECKING:
    from sphynx.protocol.relu import Backend

app = typer.Typer(help="Measure speed beside bounds and peers.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def bench() -> None:
    """Measure speed beside bounds and peers."""


@app.command("core")
def core(
    as_json: Json = False,
    repeats: Annotated[
        int, typer.Option("--repeats", min=1, help="Every number is the best of this many runs or more.")
    ] = 15,
    threads: Annotated[
        str, typer.Option("--threads", help="all: garbling and OT on one core, then on all; 1: on one core only.")
    ] = "all",
) -> None:
    """Measure the compiled core: AES, garbling, OT, RLWE beside SEAL, ring convolution beside torch.

    One core is timed by its CPU time, all cores by the wall clock, so run the latter on a quiet machine.

    Example:

      sphynx bench core --threads 1 --repeats 40
    """
    if threads not in ("all", "1"):
        raise InputError(f"--threads {threads!r} is neither all nor 1", remedy="Use --threads all or --threads 1.")
    from sphynx.bench.core import measure_core

    results = measure_core(repeats, all_cores=threads == "all", progress=lambda part: typer.echo(part, err=True))
    if as_json:
        print_json(results)
    else:
        _print_tables(results)


def _print_tables(results: dict[str, Any]) -> None:
    from sphynx.bench.core_table import RING_GOALS, rate_rows, ring_rows

    machine = results["machine"]
    where = (
        f"{machine['architecture']}, {machine['cores']} cores, AES path {machine['aes_path']}, "
        f"load {machine['load_average'][0]} at the start; best of {results['repeats']} or more"
    )
    print_table(
        "sphynx bench core", ["what", ">measured", ">bound or peer", ">ratio", "goal"], rate_rows(results), note=where
    )
    columns = (
        f">k = {bits}" + (f" (goal <= {RING_GOALS[bits]})" if bits in RING_GOALS else "") for bits in (32, 40, 64)
    )
    print_table(
        "Ring convolution, one core, 8-bit weights: time relative to torch's fp32",
        ["shape", ">GMAC/s, k = 32", ">torch", *columns],
        ring_rows(results),
        note=f"OT: {results['ot_bytes_each']:.3f} bytes each. Peers: {results['seal']}; torch {results['torch']}",
    )


@app.command("private")
def private(
    programs: Annotated[list[str] | None, typer.Argument(help="Compiled folders, or names of models.")] = None,
    untrained: Annotated[
        str, typer.Option("--untrained", help="Networks with random weights instead: 25.6k,51.2k,102.4k.")
    ] = "",
    relu: Annotated[str, typer.Option("--relu", help="gc, gmw or both.")] = "gc,gmw",
    link: Annotated[
        str, typer.Option("--link", help="loopback, lan, wan, or a round trip and a bandwidth: 20ms,200mbit.")
    ] = "loopback",
    repeat: Annotated[int, typer.Option("--repeat", min=1, help="Medians are over this many inferences.")] = 10,
    batch: Annotated[int, typer.Option("--batch", min=1, help="Images per inference.")] = 1,
    conv_stack: Annotated[
        str, typer.Option("--conv-stack", help="Of --untrained networks: paper, single or pad_once.")
    ] = "single",
    plain: Annotated[bool, typer.Option("--plain", help="Without TLS: the cost of the protocol alone.")] = False,
    json_to: Annotated[str, typer.Option("--json", help="A file for all numbers, or - for stdout.")] = "",
) -> None:
    """Measure private inference between two processes on this machine, beside the same network in the clear.

    The two talk over mutual TLS. In the clear: torch fp32, not fused, two threads. Every private result is held
    against the integer oracle; the command fails if one differs. Links other than loopback are emulated by delays.

    Examples:

      sphynx bench private --untrained 25.6k,51.2k --link loopback,lan,wan

      sphynx bench private sphynx-cifar100-25k compiled/digits --relu gmw --json private.json
    """
    backends = parse_backends(relu, "--relu")
    stack = conv_stack_for(conv_stack)
    if not programs and not untrained:
        raise InputError("there is nothing to measure", remedy="Name compiled folders, or use --untrained 25.6k.")
    from sphynx.bench.machine import describe_machine
    from sphynx.bench.private import measure_private
    from sphynx.bench.private_models import compiled_model, untrained_model
    from sphynx.bench.private_parties import plain_channel
    from sphynx.program.link import parse_links
    from sphynx.run.environment import describe_environment
    from sphynx.service.local import make_local_keys

    def tell(part: str) -> None:
        typer.echo(part, err=True)

    # Loopback is what it is; the others are emulated.
    links = {each.name: None if each.name == "loopback" else each for each in parse_links(link)}
    machine = describe_machine()
    source = {key: describe_environment()[key] for key in ("commit", "source_sha256", "command")}
    with tempfile.TemporaryDirectory(prefix="sphynx-bench-") as temporary:
        open_channel = plain_channel if plain else make_local_keys(Path(temporary) / "keys").open_channel
        models = [compiled_model(program) for program in programs or []]
        for name in filter(None, untrained.split(",")):
            tell(f"compiling {name}")
            models.append(untrained_model(name, stack, Path(temporary) / name))
        rows = measure_private(
            models, backends, links, repeats=repeat, batch=batch, open_channel=open_channel, progress=tell
        )
    for row in rows:
        row["transport"] = "plain" if plain else "TLS 1.3"
    _print_private({"machine": machine, "source": source, "rows": rows}, json_to)
    if not all(row["equal_to_oracle"] for row in rows):
        raise SphynxError(
            "a private result differs from the integer oracle", where="bench private", remedy="Please report it."
        )


def _print_private(results: dict[str, Any], json_to: str) -> None:
    import json

    from sphynx.bench.private_table import COLUMNS, table_rows

    if json_to == "-":
        print_json(results)
        return
    machine, source = results["machine"], results["source"]
    print_table(
        "sphynx bench private",
        COLUMNS,
        table_rows(results["rows"]),
        note=f"medians of {results['rows'][0]['repeats']}; {results['rows'][0]['transport']}; "
        f"{machine['architecture']}, {machine['cores']} cores, load {machine['load_average'][0]} at the start; "
        f"sphynx {machine['versions']['sphynx']} {source['commit'] or source['source_sha256']}; x: times the clear",
    )
    if json_to:
        Path(json_to).write_text(json.dumps(results, indent=1) + "\n")


def parse_backends(text: str, flag: str) -> list[Backend]:
    chosen = text.split(",")
    if not set(chosen) <= {"gc", "gmw"}:
        raise InputError(f"{text!r} is unknown", where=flag, remedy="Use gc, gmw or gc,gmw.")
    return chosen  # type: ignore[return-value]  # checked above
