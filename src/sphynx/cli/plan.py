"""`sphynx plan`: channels and depth for a ReLU budget, or the stages of a stream network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sphynx.cli import options as opt
from sphynx.cli.output import count, print_json, print_table, short
from sphynx.cli.output_files import out_file
from sphynx.cli.plan_table import print_plans
from sphynx.errors import InputError

if TYPE_CHECKING:
    from sphynx.space.choices import Borders, Family


_OF_CELLS = ("cells", "stem", "balancing", "conv_stack", "convolution")
_OF_STREAMS = ("borders", "width")


def plan(
    context: typer.Context,
    relu_budget: Annotated[str, typer.Option("--relu-budget", help="50k, 1.2M or 51200.")] = "",
    latency_budget: Annotated[
        str,
        typer.Option(
            "--latency-budget", help="Instead of --relu-budget: as many ReLUs as fit an online latency such as 100ms."
        ),
    ] = "",
    link: opt.LinkOption = "lan",
    backend: opt.BackendOption = "auto",
    tolerance: Annotated[str, typer.Option("--tolerance", help="Allowed deviation from the budget.")] = "5%",
    family: opt.FamilyOption = "cells",
    cells: opt.CellsOption = "sphynx",
    image_size: opt.ImageSize = 32,
    image_channels: opt.ImageChannels = 3,
    classes: opt.Classes = 100,
    stem: opt.StemOption = "auto",
    balancing: opt.BalancingOption = "relu",
    conv_stack: opt.ConvStackOption = "single",
    convolution: opt.ConvolutionOption = "vanilla",
    borders: opt.BordersOption = "halo",
    width: Annotated[
        int,
        typer.Option(
            "--width",
            min=0,
            help="Channels of a stream network's last stage; 0 = chosen by the budget.",
            show_default=False,
        ),
    ] = 0,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write the chosen design.json here.", callback=out_file)
    ] = None,
    as_json: opt.Json = False,
) -> None:
    """List every (channels, depth) within tolerance of a ReLU budget and choose one.

    Examples:

      sphynx plan --relu-budget 50k

      sphynx plan --relu-budget 1.2M --image-size 224 --classes 1000 --tolerance 2%

      sphynx plan --relu-budget 1k --image-size 8 --image-channels 1 --classes 10 -o design.json

      sphynx plan --latency-budget 500ms --link wan

      sphynx plan --family stream --relu-budget 25.6k -o stream.json
    """
    from sphynx.api.planning import Flags, plan_for_latency
    from sphynx.api.planning import plan as plan_budget
    from sphynx.space.planner import parse_percentage, parse_relu_budget

    if bool(relu_budget) == bool(latency_budget):
        raise InputError(
            "give either --relu-budget or --latency-budget",
            where="--relu-budget, --latency-budget",
            remedy="See sphynx plan --help.",
        )
    _refuse_idle_flags(context, family, by_latency=bool(latency_budget))
    if family == "stream":
        _plan_stream(
            relu_budget, tolerance, (image_channels, image_size, image_size), classes, borders, width, out, as_json
        )
        return
    image, estimated = (image_channels, image_size, image_size), None
    flags: Flags = {
        "image": image,
        "classes": classes,
        "cells": cells,
        "tolerance": tolerance,
        "stem": stem,
        "balancing": balancing,
        "conv_stack": conv_stack,
        "convolution": convolution,
    }
    if latency_budget:
        found = plan_for_latency(latency_budget, link=link, backend=opt.backend_for(backend), **flags)
        budget, plans, estimated = found.relu_budget, found.plans, found.estimate
    else:
        budget, plans = parse_relu_budget(relu_budget), plan_budget(relu_budget, **flags)
    if out is not None:
        plans.design.save(out)
    if as_json:
        print_json(
            {
                "relu_budget": budget,
                "reason": plans.reason,
                "online_seconds": estimated and estimated.total.online_seconds,
                "backend": estimated and estimated.backend,
                "plans": [
                    {
                        "channels": p.channels,
                        "depth": p.depth,
                        "relus": p.relus,
                        "parameters": p.parameters,
                        "macs": p.macs,
                        "chosen": p.chosen,
                    }
                    for p in plans.plans
                ],
            }
        )
        return
    print_plans(plans, budget, parse_percentage(tolerance))
    if estimated is not None:
        typer.echo(
            f"Estimated for the chosen one over {estimated.link.name}, ReLUs using {estimated.backend}: "
            f"{1e3 * estimated.total.online_seconds:.0f} ms online, {estimated.total.offline_seconds:.2f} s offline."
        )
    if out is not None:
        typer.echo(f"wrote {out}", err=True)


def _refuse_idle_flags(context: typer.Context, family: Family, *, by_latency: bool) -> None:
    """Refuse flags that would change nothing: whoever gives one expects another plan."""
    for idle, why in (
        (_OF_CELLS if family == "stream" else _OF_STREAMS, f"no effect with --family {family}"),
        (() if by_latency else ("link", "backend"), "no effect without --latency-budget"),
    ):
        opt.refuse_idle(context, idle, why)


def _plan_stream(
    relu_budget: str,
    tolerance: str,
    image: tuple[int, int, int],
    classes: int,
    borders: Borders,
    width: int,
    out: Path | None,
    as_json: bool,
) -> None:
    from sphynx.space.files import save_design
    from sphynx.space.planner import parse_percentage, parse_relu_budget
    from sphynx.space.stream_planner import plan_stream
    from sphynx.space.tally import Shape

    if not relu_budget:
        raise InputError("stream networks are planned by ReLUs", where="--latency-budget", remedy="Give --relu-budget.")
    budget, shape = parse_relu_budget(relu_budget), Shape(*image)
    plans = plan_stream(budget, parse_percentage(tolerance), shape, classes, borders, width)
    if out is not None:
        save_design(plans.chosen.design, out)
    rows = [
        {
            "stages": str(plan.design),
            "blocks": plan.design.blocks,
            "relus": plan.relus,
            "parameters": plan.parameters,
            "macs": plan.macs,
            "chosen": plan.chosen,
        }
        for plan in plans.plans
    ]
    if as_json:
        print_json({"relu_budget": budget, "reason": plans.reason, "plans": rows})
        return
    print_table(
        f"Stream networks of at most {count(budget)} ReLUs, {shape} images, {classes} classes, {borders} borders",
        ["", "stages (map:W:C of each block)", ">blocks", ">ReLUs", ">parameters", ">MACs"],
        (
            [
                "->" if plan.chosen else "",
                str(plan.design),
                str(plan.design.blocks),
                count(plan.relus),
                short(plan.parameters),
                short(plan.macs),
            ]
            for plan in plans.plans
        ),
        note=f"Chosen: {plans.reason}",
    )
    if out is not None:
        typer.echo(f"wrote {out}", err=True)
