"""The paper's experiments as a list of runs, in order of what they show per second of a GPU.

`seconds` are estimates of a run alone on an H200, from results/speed: 0.92 s per epoch of C=5, D=5 with the paper's
stacks at batch 512, growing with depth; 3.2 s of the teacher; a DARTS step 52 ms, unrolled half as much again; a step
of a placement 4.7 ms, in released form about 14. By the paper's recipe, compiled and with the test images after each
epoch, one took 2.12 s. They decide only what still fits in the time that is left.

Most networks are trained at a reduced scale, the same for all so that they can be compared: the recipe `fast` in 30
epochs, or 200 (`longer.py`). Only `paper-600-*` are by the paper's own recipe, most of them at batch 512; `paper-40-*`
are by it in 40 epochs and ask what the arithmetic and Nesterov's momentum are worth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from reproduction.experiments import EXPERIMENTS
from reproduction.gpu.longer import distillation, longer_runs, tiny
from reproduction.gpu.planned import (
    BATCH_512,
    PLACING,
    Planned,
    by_the_paper,
    name_of,
    network,
    network_of,
    search,
    short,
    short_of_found,
)  # fmt: skip
from reproduction.outcomes import SEARCHED
from sphynx.search.ranking import random_cells
from sphynx.search.supernet.cellspace import CellSpace
from sphynx.space.genotype import Genotype
from sphynx.space.published_cells import SPHYNX

# More seeds of what is compared: at 25.6K the base and its two rivals, at 30.7K the same, at 51.2K both placements.
SEEDS_AT_25K = {
    "short-c5-d5-r01": range(1, 8), "short-c5-d5-r01-separable": range(1, 6), "short-c17-d5-r01-flop": range(1, 6)
}  # fmt: skip
SEEDS_AT_31K = {
    "short-c5-d6-r01": range(1, 3), "short-c17-d6-r01-flop": range(3), "short-c5-d6-r01-separable": range(3)
}  # fmt: skip
ENDS_OF_51K = ("short-c5-d10-r05", "short-c5-d10-r36")


def planned_runs() -> list[Planned]:
    """Every network once, at the first place where one of the experiments asks for it."""
    grid5, grid6 = _grid(5), _grid(6)
    listed = [
        *_likely_rivals_beside_more_seeds(),
        by_the_paper("paper-600-b512-seed0", network(SPHYNX, 5), 0.85, **BATCH_512),
        *_grid(8),
        *_first_epochs(),
        *_arithmetic(),
        *_rows("recycled"),
        *(_placement(depth, seconds, seed) for depth, seconds in ((5, 190), (6, 240)) for seed in (0, 1)),
        _placement(8, 640, epochs=60),
        *_repeated(SEEDS_AT_25K),
        search("darts-c16-seed2-12", "darts-c16-seed2", 12, 28, seed=2),
        *grid5,
        *_rows("balancing", depth=5),
        *_rows("separable", depth=5),
        *grid6[:2],
        *(short(network(cells), f"short-random-{n}") for n, cells in enumerate(_random(4))),
        short_of_found("short-darts-released-seed2", "darts-c16-seed2", "darts-c16-seed2-12"),
        by_the_paper("paper-600-seed0", network(SPHYNX, 5), 2.3),
        *_rows("channels-depth"),
        *(run for run in _rows("relu-sharing") if "-c1-" in run.name),
        search("darts-c16-n5-seed2-8", "darts-c16-n5-seed2", 8, 13, seed=2, nodes=5),
        short_of_found("short-n5-d5", "darts-c16-n5-seed2", "darts-c16-n5-seed2-8"),
        short_of_found("short-n5-d6", "darts-c16-n5-seed2", "darts-c16-n5-seed2-8", depth=6),
        *distillation(),
        *grid6[2:],
        *(run for depth in (6, 8, 10) for name in ("recycled", "balancing", "separable") for run in _rows(name, depth)),
        *_rows("placement"),
        tiny(0, "short-tiny-c5-d5", 7.4),
        search("darts-c5-seed2-15", "darts-c5-seed2", 15, 22, seed=2, channels=5),
        short_of_found("short-darts-c5-seed2", "darts-c5-seed2", "darts-c5-seed2-15"),
        search("darts-c16-seed0-15", "darts-c16-seed0", 15, 28, seed=0),
        *_nodes_by_equal_searches(),
        search("darts-c5-seed2-50", "darts-c5-seed2", 50, 22, seed=2, channels=5),
        short_of_found("short-darts-c5-seed2-50", "darts-c5-seed2", "darts-c5-seed2-50"),
        *_rows("cifar100"),
        by_the_paper("paper-600-d6-seed0", network(SPHYNX, 6), 3.2),
        *_grid(8),
        search("darts-c16-seed2-50", "darts-c16-seed2", 50, 28, seed=2),
        short_of_found("short-darts-c16-seed2-50", "darts-c16-seed2", "darts-c16-seed2-50"),
        *longer_runs(),
    ]
    return _each_once(listed)


def _each_once(runs: list[Planned]) -> list[Planned]:
    found: dict[str, Planned] = {}
    for run in runs:
        found.setdefault(run.name, run)
    return list(found.values())


def _random(count: int) -> list[Genotype]:
    return list(random_cells(CellSpace(7), count, 0).values())


def _rows(experiment: str, depth: int | None = None) -> list[Planned]:
    return [
        short(network_of(row), name_of(row))
        for row in EXPERIMENTS[experiment].rows
        if row.data == "cifar100" and not row.distilled and not row.cells.startswith(SEARCHED)
        if depth is None or row.depth == depth
    ]


def _repeated(seeds: Mapping[str, Sequence[int]]) -> list[Planned]:
    """Plan these seeds of networks that are compared; a network's own name stands for seed 0."""
    compared = ("balancing", "separable", "placement")
    rows = {name_of(row): row for name in compared for row in EXPERIMENTS[name].rows if row.data == "cifar100"}
    return [
        short(network_of(rows[name]), f"{name}-seed{seed}" if seed else name, seed)
        for name, wanted in seeds.items()
        for seed in wanted
    ]


def _grid(depth: int) -> list[Planned]:
    """(0,1) and D/3, 2D/3 first: a claim that needs two points only."""
    first = [f"short-c5-d{depth}-r01", f"short-c5-d{depth}-r{depth // 3}{2 * depth // 3}"]
    return sorted(_rows("placement-grid", depth), key=lambda run: run.name not in first)


def _placement(depth: int, seconds: float, seed: int = 0, epochs: int = 30, *, likely: bool = False) -> Planned:
    settings = {"epochs": epochs, "batch_size": 128, "learning_rate": 0.05, **({"rivals": "likely"} if likely else {})}
    form, design = "likely" if likely else "released-tau1000", network(SPHYNX, depth)
    name = f"place-{form}-d{depth}-seed{seed}"
    return Planned(name, "place", seconds, lambda _runs: design, "released", settings, seed, variants=PLACING)


def _likely_rivals_beside_more_seeds() -> list[Planned]:
    """Placements leave much of the GPU to the trainings beside them, so both are listed in turn; the longest first."""
    first, second = (
        [_placement(5, 190, seed, likely=True), _placement(6, 240, seed, likely=True)] for seed in range(2)
    )
    ends = [_repeated({name: [seed] for name in ENDS_OF_51K}) for seed in (1, 2)]
    fp32 = [run for run in _arithmetic() if "-fp32-" in run.name]
    return [
        _placement(8, 640, epochs=60, likely=True),
        *first,
        *ends[0],
        second[0],
        *ends[1],
        second[1],
        *fp32,
        *_repeated(SEEDS_AT_31K),
        *_rows("recycled", 8),
        *_nodes_by_equal_searches(),
        *_rows("recycled", 10),
        *(run for run in _arithmetic() if "-tf32-" in run.name),
    ]


def _nodes_by_equal_searches() -> list[Planned]:
    """Cells of N=5 by the settings that gave those of `darts-c5-seed2`, and these at a second size."""
    folder, needs = "darts-c5-n5-seed2", "darts-c5-n5-seed2-15"
    return [
        search(needs, folder, 15, 10, seed=2, channels=5, nodes=5),
        short_of_found("short-n5-c5-d5", folder, needs),
        short_of_found("short-n5-c5-d6", folder, needs, depth=6),
    ]


def _arithmetic() -> list[Planned]:
    """The 25.6K network by the paper's recipe in 40 epochs: in bf16, in fp32, without Nesterov's momentum, and in TF32,
    which fp32 was on this GPU. Seed by seed, so that whatever is finished compares."""
    design = network(SPHYNX)

    def arm(name: str, seed: int, epoch_seconds: float, **changed: Any) -> Planned:
        settings = {"epochs": 40, **BATCH_512, **changed}
        seconds = 40 * epoch_seconds
        return Planned(f"{name}-seed{seed}", "train", seconds, lambda _runs: design, "paper-cifar100", settings, seed)

    first = [
        (
            arm("paper-40", seed, 1.0),
            arm("paper-40-fp32", seed, 2.0, precision="fp32"),
            arm("paper-40-plain-momentum", seed, 1.0, nesterov=False),
        )
        for seed in range(3)
    ]
    return [*chain(*first), *(arm("paper-40-tf32", seed, 1.3, precision="tf32") for seed in range(3))]


def _first_epochs() -> list[Planned]:
    """The first epoch of the released search by the width of its supernet, and after five epochs of w alone."""
    widths = [
        search(f"darts-first-c{width}", f"darts-first-c{width}-seed{seed}", 1, 45, seed=seed, channels=width)
        for width, seed in ((8, 0), (12, 0), (5, 0), (16, 1))
    ]
    warm = search("darts-first-c16-warm", "darts-first-c16-warm-seed0", 6, 15, seed=0, warmup=0.1)
    return [*widths[:1], warm, *widths[1:]]
