"""`sphynx plan`: channels and depth for a ReLU budget, or the stages of a stream network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sphynx.cli import design_options as opt
from sphynx.cli.estimate import LinkOption, ReluOption, chosen_backend, machine_rates
from sphynx.cli.output import count, print_json, print_table, short
from sphynx.cli.output_files import out_file
from sphynx.errors import InputError

if TYPE_CHECKING:
    from sphynx.program.cost.estimate import Estimate
    from sphynx.space.design import Design
    from sphynx.space.planner import Plan, PlanList

LONGEST_TABLE = 500  # rows: nobody reads more, and a terminal's table of all networks of 400M ReLUs takes minutes


def plan(
    relu_budget: Annotated[str, typer.Option("--relu-budget", help="50k, 1.2M or 51200.")] = "",
    latency_budget: Annotated[
        str, typer.Option("--latency-budget", help="Instead: as many ReLUs as an online latency such as 100ms allows.")
    ] = "",
    link: LinkOption = "lan",
    relu: ReluOption = "auto",
    tolerance: Annotated[str, typer.Option("--tolerance", help="How far from the budget is allowed.")] = "5%",
    family: Annotated[
        str, typer.Option("--family", help="cells, or stream: a linear stream that few channels are rectified beside.")
    ] = "cells",
    cells: opt.Cells = "sphynx",
    image_size: opt.ImageSize = 32,
    image_channels: opt.ImageChannels = 3,
    classes: opt.Classes = 100,
    stem: opt.StemOption = "auto",
    balancing: opt.Balancing = "relu",
    conv_stack: opt.ConvStack = "single",
    convolution: opt.Convolution = "vanilla",
    borders: opt.BordersOption = "halo",
    width: Annotated[
        int,
        typer.Option("--width", min=0, help="Of a stream in its last stage; 0 = by the budget.", show_default=False),
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
    from sphynx.space.files import save_design
    from sphynx.space.planner import parse_percentage, parse_relu_budget
    from sphynx.space.planner import plan as plan_budget

    if bool(relu_budget) == bool(latency_budget):
        raise InputError("give one of them", where="--relu-budget, --latency-budget", remedy="See sphynx plan --help.")
    if family == "stream":
        _plan_stream(
            relu_budget, tolerance, (image_channels, image_size, image_size), classes, borders, width, out, as_json
        )
        return
    if family != "cells":
        raise InputError(f"{family!r} is not a family", where="--family", remedy="Use cells or stream.")
    template = opt.design_for(
        cells=cells, channels=2, depth=3, reduce_positions=None, image_size=image_size, image_channels=image_channels,
        classes=classes, stem=stem, balancing=balancing, conv_stack=conv_stack, convolution=convolution,
    )  # fmt: skip
    estimated = None
    if latency_budget:
        budget, plans, estimated = _within_latency(template, latency_budget, parse_percentage(tolerance), link, relu)
    else:
        budget = parse_relu_budget(relu_budget)
        plans = plan_budget(template, budget, parse_percentage(tolerance))
    if out is not None:
        save_design(plans.chosen.design, out)
    if as_json:
        print_json(
            {
                "relu_budget": budget,
                "reason": plans.reason,
                "online_seconds": estimated and estimated.total.online_seconds,
                "relu_protocol": estimated and estimated.backend,
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
    print_plans(plans, budget, tolerance)
    if estimated is not None:
        typer.echo(
            f"Estimated for the chosen one over {estimated.link.name}, ReLU by {estimated.backend}: "
            f"{1e3 * estimated.total.online_seconds:.0f} ms online, {estimated.total.offline_seconds:.2f} s offline."
        )
    if out is not None:
        typer.echo(f"wrote {out}", err=True)


def _plan_stream(
    relu_budget: str, tolerance: str, image: tuple[int, int, int], classes: int, borders: str, width: int,
    out: Path | None, as_json: bool,
) -> None:  # fmt: skip
    from sphynx.space.files import save_design
    from sphynx.space.planner import parse_percentage, parse_relu_budget
    from sphynx.space.stream_planner import plan_stream
    from sphynx.space.tally import Shape

    if not relu_budget:
        raise InputError("streams are planned by ReLUs", where="--latency-budget", remedy="Give --relu-budget.")
    budget, shape = parse_relu_budget(relu_budget), Shape(*image)
    plans = plan_stream(budget, parse_percentage(tolerance), shape, classes, opt.borders_for(borders), width)
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


def _within_latency(
    template: Design, budget: str, tolerance: float, link: str, relu: str
) -> tuple[int, PlanList, Estimate]:
    from sphynx.program.cost.link import parse_link, parse_seconds
    from sphynx.program.latency import largest_within

    seconds, parsed, backend = parse_seconds(budget), parse_link(link), chosen_backend(relu)
    return largest_within(template, seconds, tolerance, machine_rates(), parsed, backend)


def print_plans(plans: PlanList, budget: int, tolerance: str) -> None:
    from sphynx.space.planner import parse_percentage

    chosen, within = plans.chosen.design, f"{100 * parse_percentage(tolerance):g}%"
    shown, left_out = list(plans.plans), ""
    if len(shown) > LONGEST_TABLE:
        shown = _nearest_of_each_depth(plans, budget)
        left_out = f" The nearest of each depth, of {count(len(plans.plans))}: `sphynx plan --json` lists all."
    print_table(
        f"Networks within {within} of {count(budget)} ReLUs, {chosen.image} images, {chosen.classes} classes",
        ["", ">C", ">D", ">ReLUs", ">off", ">parameters", ">MACs"],
        (
            [
                "->" if p.chosen else "",
                str(p.channels),
                str(p.depth),
                count(p.relus),
                f"{p.relus / budget - 1:+.1%}",
                short(p.parameters),
                short(p.macs),
            ]
            for p in shown
        ),
        note=f"Chosen: {plans.reason} Reduce cells at D/3 and 2D/3 here.{left_out}",
    )


def _nearest_of_each_depth(plans: PlanList, budget: int) -> list[Plan]:
    """And the chosen one."""
    nearest: dict[int, Plan] = {}
    for p in plans.plans:
        best = nearest.setdefault(p.depth, p)
        if abs(p.relus - budget) < abs(best.relus - budget):
            nearest[p.depth] = p
    return [p for p in plans.plans if p.chosen or p is nearest[p.depth]]
