"""The paper's experiments as data: every row is one network, where it comes from, and what the paper says of it.

`experiments.csv` holds the rows; here are the titles, how each experiment is drawn, and what is to be known of its
numbers. A row names its network completely, so that a scale (`scales.py`) can turn it into a training job.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import resources
from typing import Literal

from sphynx.errors import InputError

Picture = Literal["pareto", "bars", "placement"]
# What a claim is about (`verdicts`): accuracies as printed, one series ahead of the others, networks that are equally
# good, placements that reduce early, the choice that Algorithm 1 makes, or the one that it makes with rivals by
# probability.
Judged = Literal["accuracies", "pairs", "flat", "early", "choice", "likely-choice"]


@dataclass(frozen=True)
class Row:
    experiment: str
    data: str  # the data set that the paper used
    series: str
    label: str
    network: Literal["sphynx", "micro", "resnet18", "vgg11"]
    cells: str  # a published genotype, search:N for what a search with N nodes finds, or random:I for the I-th drawn
    channels: int  # the width of a reference network
    depth: int
    reduce_at: tuple[int, ...] | None
    options: Mapping[str, str]
    accuracy: float | None  # the paper's, in percent; of random cells it has none
    std: float | None
    beta: float | None  # the paper's learned probability of this placement
    latency_ms: float | None
    source: str
    note: str

    @property
    def distilled(self) -> bool:
        return "teacher" in self.options


@dataclass(frozen=True)
class Experiment:
    name: str
    title: str
    picture: Picture
    claim: str  # what the paper concludes; or what we ask, where the claim is `ours`
    notes: tuple[str, ...] = ()
    judged: Judged = "pairs"
    ahead: str = ""  # the series that the claim puts ahead; the first one where it is not said
    ours: bool = False  # the paper neither states the claim nor has a table for it
    networks_of: str = ""  # the experiment whose networks it judges, where it has none of its own

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """An experiment on the networks of another one trains them and searches nothing."""
        own = tuple(row for row in read_rows() if row.experiment == (self.networks_of or self.name))
        return tuple(replace(row, beta=None) for row in own) if self.networks_of else own

    @property
    def source(self) -> str:
        return "ours, not in the paper" if self.ours else self.rows[0].source

    @property
    def told_claim(self) -> str:
        return f"Our question, not a claim of the paper: {self.claim}" if self.ours else f"The paper: {self.claim}"


EXPERIMENTS = {
    experiment.name: experiment
    for experiment in (
        Experiment(
            "cifar100",
            "CIFAR-100: accuracy against ReLUs",
            "pareto",
            "Sphynx is on the accuracy-latency front of private inference.",
            (
                "The paper's table gives means of three seeds, its Pareto figure higher single values.",
                "The figure's DeepReDuce points (738 ms, 64.36 %) and (2180 ms, 71.1 %) are in no table.",
            ),
            judged="accuracies",
        ),
        Experiment(
            "distillation",
            "CIFAR-100 with a teacher",
            "pareto",
            "Distillation lifts every network by 2.3 to 3.3 points.",
            (
                "The improvement column of the paper's first row does not follow from its own numbers.",
                "The paper's formula sums squares over the classes, which is what runs here; its text says their mean.",
            ),
            ahead="Sphynx, distilled",
        ),
        Experiment(
            "tiny-imagenet",
            "Tiny-ImageNet with the CIFAR-100 cells",
            "pareto",
            "614K ReLUs come close to ResNet18 with 2228K.",
            judged="accuracies",
        ),
        Experiment(
            "imagenet",
            "ImageNet with the CIFAR-100 cells",
            "pareto",
            "Sphynx dominates narrow ResNet18 and VGG11.",
            ("The paper's ImageNet latencies are estimates.",),
            judged="accuracies",
        ),
        Experiment(
            "placement-grid",
            "Where the reduce cells go: learned beta beside every placement trained alone",
            "placement",
            "The learned placement is the best one of the grid.",
            (
                "The grid's values differ from the means of three elsewhere: D=5 at (1,3) is 59.87 here and 61.88 in "
                "figure 4; D=6 at (2,4) 60.02 and 62.38; D=8 at (1,3) 68.56 and 68.23.",
                "The text has C(D,2) candidates; the figure shows those up to 2D/3.",
            ),
            judged="choice",
        ),
        Experiment(
            "early-places",
            "Where the reduce cells go: early placements against later ones",
            "bars",
            "The reduce cells' places are critical: in figure 5 those that begin at 0 or 1 are better.",
            judged="early",
            networks_of="placement-grid",
        ),
        Experiment(
            "likely-rivals",
            "Where the reduce cells go: Algorithm 1 as released, but for rivals drawn by probability",
            "bars",
            "With rivals drawn by probability Algorithm 1 takes the best placement of the grid.",
            judged="likely-choice",
            ours=True,
            networks_of="placement-grid",
        ),
        Experiment(
            "placement",
            "Searched places against D/3 and 2D/3",
            "bars",
            "Searched places gain 2.3 to 5 points.",
            ("Three of the fixed networks are also in the grid of figure 5: 2.0, 2.4 and 0.1 points lower there.",),
        ),
        Experiment(
            "channels-depth",
            "Channels against depth at about 50K ReLUs",
            "bars",
            "The split between channels and depth matters little (69.38 +- 0.23).",
            judged="flat",
        ),
        Experiment(
            "balancing",
            "ReLU balancing against FLOP balancing",
            "bars",
            "ReLU balancing is better at every budget.",
            ("The 41.4K FLOP-balanced network has 39,936 ReLUs as configured.",),
        ),
        Experiment(
            "separable",
            "Vanilla against separable convolutions",
            "bars",
            "Vanilla convolutions are slightly better.",
            ("The ImageNet pair is said to have 188K ReLUs; no such network is in the paper's tables.",),
        ),
        Experiment(
            "nodes",
            "Cells of N=7 nodes against N=5",
            "bars",
            "The larger cells are better.",
            ("The paper's table prints 65.57 for N=7 at 51.2K; it is 69.57 everywhere else.",),
        ),
        Experiment(
            "recycled",
            "DARTS and PC-DARTS cells in the Sphynx space",
            "bars",
            "Cells searched in the space are better.",
            ("The paper's table prints 65.57 for Sphynx at 51.2K; it is 69.57 everywhere else.",),
        ),
        Experiment(
            "relu-sharing",
            "Sphynx against the micro-search space with shared ReLUs",
            "bars",
            "The micro-search space cannot be scaled down this far.",
            (
                "Sphynx at 50K is 67.31 in the figure and 69.57 in the text.",
                "The printed counts of the micro-search networks are those before sharing.",
            ),
        ),
        Experiment(
            "random-cells",
            "The published cells against random ones",
            "bars",
            "Searched cells are better than random ones.",
            ("The paper has no table for this; it is what a search is for.",),
            ours=True,
        ),
        Experiment(
            "search",
            "Cells searched here against random ones",
            "bars",
            "DARTS finds better cells than random ones in this space.",
            ours=True,
        ),
    )
}


def experiment_named(name: str) -> Experiment:
    if name not in EXPERIMENTS:
        raise InputError(f"there is no experiment called {name!r}", remedy=f"Use one of {', '.join(EXPERIMENTS)}.")
    return EXPERIMENTS[name]


def read_rows() -> list[Row]:
    text = resources.files("reproduction").joinpath("experiments.csv").read_text()
    return [_row(fields) for fields in csv.DictReader(text.splitlines())]


def _row(fields: Mapping[str, str]) -> Row:
    options = dict(option.partition("=")[::2] for option in fields["options"].split())
    return Row(
        experiment=fields["experiment"],
        data=fields["data"],
        series=fields["series"],
        label=fields["label"],
        network=fields["network"],  # type: ignore[arg-type]  # our own file; a test reads every row
        cells=fields["cells"],
        channels=int(fields["channels"]),
        depth=int(fields["depth"] or 0),
        reduce_at=tuple(map(int, fields["reduce_at"].split(","))) if fields["reduce_at"] else None,
        options=options,
        accuracy=_number(fields["accuracy"]),
        std=_number(fields["std"]),
        beta=_number(fields["beta"]),
        latency_ms=_number(fields["latency_ms"]),
        source=fields["source"],
        note=fields["note"],
    )


def _number(text: str) -> float | None:
    return float(text) if text else None
