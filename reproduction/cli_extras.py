"""Extras of an experiment beside accuracies: the paper's estimated latencies, and what Algorithm 1 saves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from sphynx.cli.output import print_table

if TYPE_CHECKING:
    from reproduction.experiments import Experiment
    from reproduction.outcomes import Outcome
    from reproduction.scales import Scale


def extras(experiment: Experiment, scale: Scale, outcomes: list[Outcome]) -> dict[str, Any]:
    """Collect what an experiment gives beside its rows."""
    from reproduction.latency import estimates_of
    from reproduction.placement_saving import savings

    found = {
        "latency_estimates_of_the_paper": estimates_of(experiment.name),
        "saving": [{**saving.to_json(), "placed_by": scale.placement_recipe().method} for saving in savings(outcomes)],
    }
    return {name: values for name, values in found.items() if values}


def print_saving(scale: Scale, outcomes: list[Outcome]) -> None:
    from reproduction.placement_saving import savings

    found = savings(outcomes)
    if not found:
        return
    columns = ["network", ">candidates", ">search, min", ">training its choice, min", ">training all, min"]
    print_table(
        f"{scale.placement_recipe().method} against training every placement, measured",
        [*columns, ">times as long", ">the paper's claim"],
        (
            [
                saving.series,
                str(saving.candidates),
                f"{saving.search_minutes:.2f}",
                f"{saving.training_minutes:.2f}",
                f"{saving.grid_minutes:.2f}",
                f"{saving.ratio:.2f}",
                f"{saving.claimed_ratio:g}",
            ]
            for saving in found
        ),
        note="One seed. The paper claims candidates / 2, for a search as long as one training; it prints no times.",
    )


def print_latency_estimates(data: str) -> None:
    from reproduction.latency import imagenet_estimates, implied_gc_s_per_relu, measured_s_per_relu, safenet

    if data == "imagenet":
        print_table(
            "Estimates: online latency of the paper's ImageNet networks",
            ["network", ">printed, s", ">GC, s", ">left for plaintext, s", ">by Tiny-ImageNet, s", ">off by"],
            (
                [
                    row.network,
                    f"{row.printed_s:.2f}",
                    f"{row.gc_s:.2f}",
                    f"{row.left_for_plaintext_s:.2f}",
                    f"{row.from_tiny_s:.2f}",
                    f"{row.from_tiny_error:+.1%}",
                ]
                for row in imagenet_estimates()
            ),
            note=f"GC: {1e6 * implied_gc_s_per_relu():.2f} µs per ReLU, which the ResNet18 and VGG11 rows imply. "
            "These rows leave nothing for plaintext time, which the paper says it adds; those of Sphynx do. "
            f"By Tiny-ImageNet: {1e6 * measured_s_per_relu():.2f} µs, its networks' whole latency per ReLU.",
        )
    elif data == "cifar100":
        found = safenet()
        typer.echo(
            f"- SAFENet's {found.here_s:g} s are an estimate: {found.there_s:.1f} s on its own machine, scaled by "
            f"DELPHI's {found.delphi_here_s:g} s here and {found.delphi_there_s:g} s there. The paper does not print "
            f"the {found.there_s:.1f} s; they follow from its result."
        )


def latency_estimates(*, quiet: bool) -> dict[str, Any]:
    from reproduction.latency import estimates_of

    data_sets = ("imagenet", "cifar100")
    if not quiet:
        for data in data_sets:
            print_latency_estimates(data)
    return {data: estimates_of(data) for data in data_sets}
