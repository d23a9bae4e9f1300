"""`sphynx plan`: channels and depth for a ReLU budget."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sphynx.cli import design_options as opt
from sphynx.cli.output import count, print_json, print_table, short

if TYPE_CHECKING:
    from sphynx.space.planner import PlanList


def plan(
    relu_budget: Annotated[str, typer.Option("--relu-budget", help="50k, 1.2M or 51200.")],
    tolerance: Annotated[str, typer.Option("--tolerance", help="How far from the budget is allowed.")] = "5%",
    cells: opt.Cells = "sphynx",
    image_size: opt.ImageSize = 32,
    image_channels: opt.ImageChannels = 3,
    classes: opt.Classes = 100,
    stem: opt.StemOption = "auto",
    balancing: opt.Balancing = "relu",
    conv_stack: opt.ConvStack = "paper",
    convolution: opt.Convolution = "vanilla",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the chosen design.json here.")] = None,
    as_json: opt.Json = False,
) -> None:
    """List every (channels, depth) within tolerance of a ReLU budget and choose one.

    Examples:

      sphynx plan --relu-budget 50k

      sphynx plan --relu-budget 1.2M --image-size 224 --classes 1000 --tolerance 2%

      sphynx plan --relu-budget 1k --image-size 8 --image-channels 1 --classes 10 -o design.json
    """
    from sphynx.space.files import save_design
    from sphynx.space.planner import parse_percentage, parse_relu_budget
    from sphynx.space.planner import plan as plan_budget

    budget = parse_relu_budget(relu_budget)
    template = opt.design_for(
        cells=cells, channels=2, depth=3, reduce_positions=None, image_size=image_size, image_channels=image_channels,
        classes=classes, stem=stem, balancing=balancing, conv_stack=conv_stack, convolution=convolution,
    )  # fmt: skip
    plans = plan_budget(template, budget, parse_percentage(tolerance))
    if output is not None:
        save_design(plans.chosen.design, output)
    if as_json:
        print_json(
            {
                "relu_budget": budget,
                "reason": plans.reason,
                "plans": [
                    {
                        "channels": p.design.channels,
                        "depth": p.design.depth,
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
    if output is not None:
        typer.echo(f"wrote {output}", err=True)


def print_plans(plans: PlanList, budget: int, tolerance: str) -> None:
    chosen = plans.chosen.design
    print_table(
        f"Networks within {tolerance} of {count(budget)} ReLUs, {chosen.image} images, {chosen.classes} classes",
        ["", ">C", ">D", ">ReLUs", ">off", ">parameters", ">MACs"],
        (
            [
                "->" if p.chosen else "",
                str(p.design.channels),
                str(p.design.depth),
                count(p.relus),
                f"{p.relus / budget - 1:+.1%}",
                short(p.parameters),
                short(p.macs),
            ]
            for p in plans.plans
        ),
        note=f"Chosen: {plans.reason} Reduce cells at D/3 and 2D/3 here.",
    )
