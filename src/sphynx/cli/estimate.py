"""`sphynx estimate`: how long a compiled program takes on this machine and a given link."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sphynx.cli import options as opt
from sphynx.cli.output import nonlinear_text, print_json, print_table
from sphynx.cli.output_files import out_file
from sphynx.errors import InputError
from sphynx.program.security import Reveal
from sphynx.space.prices import Counted
from sphynx.units import bytes_text, rate_text, seconds_text

if TYPE_CHECKING:
    from sphynx.program.backends import Backend
    from sphynx.program.cost.link import Link
    from sphynx.program.cost.rates import Rates
    from sphynx.program.ir import Program

Recalibrate = Annotated[bool, typer.Option("--recalibrate", help="Measure this machine again.")]


def estimate(
    compiled: Annotated[
        str,
        typer.Argument(
            help="A folder made by `sphynx compile`, its program.json, a model's name; with --prices a stream's "
            "design.json."
        ),
    ],
    link: opt.LinkOption = "lan",
    backend: opt.BackendOption = "auto",
    reveal: Annotated[
        Reveal, typer.Option("--reveal", help="What clients get: logits, or the label alone.")
    ] = "logits",
    margin: Annotated[
        float, typer.Option("--margin", min=0, help="With the label: how far it must lead, as `sphynx serve` takes it.")
    ] = 0.0,
    weight_memory: opt.WeightMemory = "",
    recalibrate: Recalibrate = False,
    prices: Annotated[
        Path | None,
        typer.Option(
            "--prices",
            help="For a stream's design.json: write what a channel of each block costs to this file, for "
            "`sphynx search relus` and `sphynx design`.",
            callback=out_file,
        ),
    ] = None,
    counted: Annotated[
        Counted, typer.Option("--counted", help="With --prices: seconds online, or in total with those offline.")
    ] = "online",
    rate: Annotated[
        str,
        typer.Option("--rate", help="Estimate the resources for a rate of inferences instead: 100/s, 50/min, 1000/h."),
    ] = "",
    ahead: Annotated[
        str, typer.Option("--ahead", help="With --rate: how far ahead bundles are kept ready, such as 600s.")
    ] = "600s",
    as_json: opt.Json = False,
) -> None:
    """Estimate offline and online time and traffic of one private inference, layer by layer.

    Examples:

      sphynx estimate compiled/digits --link wan

      sphynx estimate sphynx-cifar100-25k --link lan

      sphynx estimate compiled/digits --link 20ms,300Mbit --backend gc --json

      sphynx estimate stream.json --link lan --prices prices.json --counted total

      sphynx estimate sphynx-cifar100-25k --link lan --reveal label

      sphynx estimate sphynx-cifar100-25k --weight-memory 200M

      sphynx estimate sphynx-cifar100-25k --rate 100/s
    """
    if weight_memory and (rate or prices):
        raise InputError(
            "rates and prices are planned with all weights held in memory",
            where="--weight-memory",
            remedy="Leave it away, or estimate without --rate and --prices.",
        )
    from sphynx.api.rates import machine_rates
    from sphynx.program.cost.estimate import estimate as estimate_program
    from sphynx.program.cost.link import parse_link
    from sphynx.program.folder import load_program
    from sphynx.program.revealing import revealed
    from sphynx.protocol.planned_he import group_size, planned_he
    from sphynx.zoo.shipped import program_path

    chosen, parsed = opt.backend_for(backend), parse_link(link)
    memory_bytes = opt.parse_memory(weight_memory, "--weight-memory")
    if prices is not None:
        _write_prices(Path(compiled), machine_rates(recalibrate=recalibrate), parsed, chosen, prices, counted, as_json)
        return
    program = revealed(load_program(program_path(compiled)), reveal, margin)
    rates = machine_rates(recalibrate=recalibrate)
    if rate:
        _print_capacity(program, rates, rate, ahead, chosen, as_json)
        return
    found = estimate_program(program, rates, parsed, chosen, planned=planned_he(program, 1, memory_bytes))
    size = group_size(program)
    grouped = estimate_program(
        program, rates, parsed, found.backend, planned=planned_he(program, size, memory_bytes), bundles=size
    ).total
    if as_json:
        counts = {"relus": program.relu_count, "comparisons": program.comparison_count}
        group = {"bundles": size, "offline_seconds": grouped.offline_seconds, "offline_bytes": grouped.offline_bytes}
        print_json({"compiled": str(compiled), **counts, "rates": rates.to_json(), **found.to_json(), "group": group})
        return
    rows = [
        [
            layer.name,
            seconds_text(layer.offline_seconds),
            seconds_text(layer.online_seconds),
            bytes_text(layer.offline_bytes),
            bytes_text(layer.online_bytes),
        ]
        for layer in (*found.layers, found.total)
    ]
    print_table(
        f"{compiled} over {parsed.name}, ReLUs using {found.backend}, both parties on {rates.machine}",
        ["linear map", ">offline", ">online", ">offline bytes", ">online bytes"],
        rows,
        note=f"{nonlinear_text(program)}; {_link_words(parsed)}, {rates.cores} cores for both parties. "
        "Set-up (TLS, base OT, keys) and frame headers are not counted."
        + (
            f" Prepared {size} at once, as clients with a pool do: {seconds_text(grouped.offline_seconds)} and "
            f"{bytes_text(grouped.offline_bytes)} offline for each."
            if size > 1
            else ""
        ),
    )


def _print_capacity(
    program: Program, rates: Rates, rate: str, ahead: str, backend: Backend | None, as_json: bool
) -> None:
    from sphynx.program.cost.link import parse_seconds
    from sphynx.protocol.capacity import capacity, parse_rate

    found = capacity(program, rates, parse_rate(rate), backend=backend, ahead_s=parse_seconds(ahead))
    if as_json:
        print_json(found.to_json())
        return
    bundles = f"bundles for {found.ahead_s:g} s ahead"
    rows = [
        ["cores of the server", f"{found.server_cores:.1f}", f"sphynx serve --processes {found.processes}"],
        ["cores of all clients", f"{found.client_cores:.1f}", ""],
        ["memory of the server", bytes_text(found.server_memory_bytes), "without --memory for bundles"],
        ["traffic", rate_text(found.bits_per_s), "both directions"],
        [
            "disk of the server",
            bytes_text(found.server_disk_bytes),
            f"{bundles}, {bytes_text(found.server_bundle_bytes)} each",
        ],
        [
            "disk of all clients",
            bytes_text(found.client_disk_bytes),
            f"{bundles}, {bytes_text(found.client_bundle_bytes)} each",
        ],
        ["ledger of the server, a day", bytes_text(found.ledger_bytes_per_day), "spent rows are deleted after 90 days"],
    ]
    print_table(
        f"{rate}, ReLUs using {found.backend}, cores like those of {rates.machine}",
        ["what", ">how much", "by"],
        rows,
        note="At this rate the cores are always busy: plan for two thirds of it. How it is computed: docs/growth.md",
    )


def _write_prices(
    design: Path, rates: Rates, link: Link, backend: Backend | None, out: Path, counted: Counted, as_json: bool
) -> None:
    from sphynx.compiler.stream_prices import stream_prices
    from sphynx.space.files import load_any_design
    from sphynx.space.stream import StreamDesign

    found = load_any_design(design)
    if not isinstance(found, StreamDesign):
        raise InputError(
            "prices can only be made for a stream network",
            where=str(design),
            remedy="Give a design made by sphynx plan --family stream.",
        )
    prices = stream_prices(found, rates, link, backend, counted)
    prices.save(out)
    if as_json:
        print_json(prices.to_json())
        return
    places = [
        (f"stage {number}, block {block}", channels)
        for number, stage in enumerate(found.stages)
        for block, channels in enumerate(stage.channels)
    ]
    print_table(
        f"Prices of {found} over {link.name}, ReLUs using {prices.backend}: {out}",
        ["block", ">C", f">per channel, {'online' if counted == 'online' else 'in total'}"],
        [[name, str(C), seconds_text(price)] for (name, C), price in zip(places, prices.channel_seconds, strict=True)],
        note=f"{seconds_text(prices.fixed_seconds)} for everything else; both parties on {rates.machine}",
    )


def _link_words(link: Link) -> str:
    if math.isinf(link.bits_per_s):
        return "this machine's own loopback"
    return f"round trip {seconds_text(link.round_trip_s)}, {rate_text(link.bits_per_s)}"
