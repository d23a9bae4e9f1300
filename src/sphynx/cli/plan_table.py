"""The table of planned networks: what `sphynx plan` prints, and `sphynx design` before it begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sphynx.cli.output import count, print_table
from sphynx.units import short_number

if TYPE_CHECKING:
    from sphynx.space.design import Design
    from sphynx.space.planner import Plan, PlanList
    from sphynx.space.stream_planner import StreamPlanList

LONGEST_TABLE = 500  # rows: nobody reads more, and a terminal's table of all networks of 400M ReLUs takes minutes


def print_plans(plans: PlanList, budget: int, tolerance: float, placed: Design | None = None) -> None:
    """`placed`: the chosen one, where it is known already where its reduce cells go."""
    chosen = plans.design
    shown, left_out = list(plans.plans), ""
    if len(shown) > LONGEST_TABLE:
        shown = _nearest_of_each_depth(plans, budget)
        left_out = (
            f" Only the nearest of each depth is shown; `sphynx plan --json` lists all {count(len(plans.plans))}."
        )
    print_table(
        f"Networks within {100 * tolerance:g} % of {count(budget)} ReLUs, {chosen.image} images, "
        f"{chosen.classes} classes",
        ["", ">C", ">D", ">ReLUs", ">off", ">parameters", ">MACs"],
        (
            [
                "->" if p.chosen else "",
                str(p.channels),
                str(p.depth),
                count(p.relus),
                f"{100 * (p.relus / budget - 1):+.1f} %",
                short_number(p.parameters),
                short_number(p.macs),
            ]
            for p in shown
        ),
        note=f"Chosen: {plans.reason} Reduce cells are counted at D/3 and 2D/3.{_describe_count(placed)}{left_out}",
    )


def print_streams(plans: StreamPlanList) -> None:
    chosen = plans.design
    print_table(
        f"Stream networks of at most {count(plans.relu_budget)} ReLUs, {chosen.image} images, "
        f"{chosen.classes} classes, {chosen.borders} borders",
        ["", "stages (map:W:C of each block)", ">blocks", ">ReLUs", ">parameters", ">MACs"],
        (
            [
                "->" if plan.chosen else "",
                str(plan.design),
                str(plan.design.blocks),
                count(plan.relus),
                short_number(plan.parameters),
                short_number(plan.macs),
            ]
            for plan in plans.plans
        ),
        note=f"Chosen: {plans.reason}",
    )


def _describe_count(placed: Design | None) -> str:
    if placed is None:
        return ""
    places = ", ".join(map(str, placed.reduce_positions))
    parameters, macs = short_number(placed.parameters), short_number(placed.macs)
    return f" At {places} the chosen one has {parameters} parameters and {macs} MACs."


def _nearest_of_each_depth(plans: PlanList, budget: int) -> list[Plan]:
    """The nearest plan of each depth, and the chosen one."""
    nearest: dict[int, Plan] = {}
    for p in plans.plans:
        best = nearest.setdefault(p.depth, p)
        if abs(p.relus - budget) < abs(best.relus - budget):
            nearest[p.depth] = p
    return [p for p in plans.plans if p.chosen or p is nearest[p.depth]]
