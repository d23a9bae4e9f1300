"""`sphynx plan`: channels and depth for a ReLU budget, or the stages of a stream network."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sphynx.api.plan_settings import PlanSettings
from sphynx.cli import options as opt
from sphynx.cli.output import print_json, say_next
from sphynx.cli.output_files import out_file
from sphynx.cli.plan_table import print_plans, print_streams
from sphynx.cli.record_flags import with_record_flags
from sphynx.units import seconds_text

if TYPE_CHECKING:
    from sphynx.api.planning import LatencyPlan
    from sphynx.space.choices import Family
    from sphynx.space.planner import PlanList
    from sphynx.space.stream_planner import StreamPlanList

# By the shipped networks of both families.
STREAMS_ARE_BETTER = (
    "A stream network with as many ReLUs is more accurate (--family stream): on CIFAR-100 74.8 against 69.3 % at 25K "
    "ReLUs, 78.7 against 72.4 % at 51K."
)
_OF_CELLS = ("cells", "stem", "balancing", "conv_stack", "convolution")
_OF_STREAMS = ("borders", "width")


@with_record_flags
def plan(
    context: typer.Context,
    settings: Annotated[PlanSettings, {"image": None}],
    image_size: opt.ImageSize = 32,
    image_channels: opt.ImageChannels = 3,
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
    from sphynx.api.planning import LatencyPlan, plan_by
    from sphynx.space.stream_planner import StreamPlanList

    _refuse_idle_flags(context, settings.family, by_latency=settings.latency_budget is not None)
    settings = replace(settings, image=(image_channels, image_size, image_size))
    found = plan_by(settings)
    if out is not None:
        found.design.save(out)
    if isinstance(found, StreamPlanList):
        _show_streams(found, as_json)
    elif isinstance(found, LatencyPlan):
        _show_cells(found.plans, settings, as_json, found)
    else:
        _show_cells(found, settings, as_json)
        if not as_json and _streams_are_better(settings):
            typer.echo(STREAMS_ARE_BETTER)
    if out is not None and not as_json:
        typer.echo(f"wrote {out}", err=True)
        say_next("sphynx", "train", str(out), "--data", "DATA", "--out", f"runs/{out.stem}")


def _refuse_idle_flags(context: typer.Context, family: Family, *, by_latency: bool) -> None:
    """Refuse flags that would change nothing: whoever gives one expects another plan."""
    for idle, why in (
        (_OF_CELLS if family == "stream" else _OF_STREAMS, f"no effect with --family {family}"),
        (() if by_latency else ("link", "backend"), "no effect without --latency-budget"),
    ):
        opt.refuse_idle(context, idle, why)


def _streams_are_better(settings: PlanSettings) -> bool:
    """Wherever one fits the budget; the shapes that only cells have are asked for by name."""
    from sphynx.api.planning import plan_by
    from sphynx.errors import InputError

    try:
        return bool(plan_by(replace(settings, family="stream")))
    except InputError:
        return False


def _show_cells(plans: PlanList, settings: PlanSettings, as_json: bool, by_latency: LatencyPlan | None = None) -> None:
    from sphynx.space.planner import parse_percentage

    estimated = None if by_latency is None else by_latency.estimate
    budget = plans.relu_budget
    if as_json:
        rows = [_row(plan, channels=plan.channels, depth=plan.depth) for plan in plans.plans]
        seconds, backend = (None, None) if estimated is None else (estimated.total.online_seconds, estimated.backend)
        said = {"relu_budget": budget, "reason": plans.reason, "online_seconds": seconds, "backend": backend}
        print_json({**said, "plans": rows})
        return
    print_plans(plans, budget, parse_percentage(settings.tolerance))
    if estimated is not None:
        typer.echo(
            f"Estimate for the chosen network over {estimated.link.name}, ReLUs using {estimated.backend}: "
            f"{seconds_text(estimated.total.online_seconds)} online, "
            f"{seconds_text(estimated.total.offline_seconds)} offline."
        )


def _show_streams(plans: StreamPlanList, as_json: bool) -> None:
    if as_json:
        rows = [_row(plan, stages=str(plan.design), blocks=plan.design.blocks) for plan in plans.plans]
        print_json({"relu_budget": plans.relu_budget, "reason": plans.reason, "plans": rows})
        return
    print_streams(plans)


def _row(plan: Any, **first: Any) -> dict[str, Any]:
    return {**first, **{name: getattr(plan, name) for name in ("relus", "parameters", "macs", "chosen")}}
