"""The paper's experiments as a list of runs, in order of what they show per second of a GPU.

`seconds` are estimates of a run alone on an H200, from results/speed: 0.92 s per epoch of C=5, D=5 with the paper's
stacks at batch 512, growing with depth; 3.2 s of the teacher; a DARTS step 52 ms, unrolled half as much again; a step
of a placement 4.7 ms, in released form about 14. By the paper's recipe, compiled and with the test images after each
epoch, one took 2.12 s. They decide only what still fits in the time that is left.

Most networks are trained at a reduced scale, the same for all so that they can be compared: the recipe `fast` in 30
epochs. Only `paper-600-*` are by the paper's own recipe, one of them at batch 512; `paper-40-*` are by it in 40 epochs
and ask what the arithmetic and Nesterov's momentum are worth.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from reproduction.experiments import EXPERIMENTS, Row
from reproduction.outcomes import SEARCHED, cells_of
from reproduction.scales import design_of
from sphynx.report.naming import DATA_SETS
from sphynx.search.ranking import random_cells
from sphynx.search.supernet.cellspace import CellSpace
from sphynx.space.design import Design
from sphynx.space.files import AnyDesign
from sphynx.space.genotype import Genotype
from sphynx.space.published_cells import SPHYNX

SHORT_EPOCHS = 30
ELSEWHERE = ("darts-v2-in-sphynx", "pc-darts-in-sphynx")  # have more convolutions than the published cells
TINY = "tiny-imagenet"
TINY_EPOCH_SECONDS = 7.4  # C=5, D=5: twice the images, four times the pixels
EPOCH_SECONDS = 0.92  # C=5, D=5, batch 512
IMAGE, CLASSES = DATA_SETS["cifar100"]
# The paper's recipe at another batch: the rate grows with it, after a warm-up (docs/results/rules.md).
BATCH_512: dict[str, Any] = {
    "batch_size": 512, "learning_rate": 0.1333, "schedule": "warmup-cosine", "warmup_epochs": 5
}  # fmt: skip
# More seeds of what is compared: at 25.6K the base and its two rivals, at 30.7K the same, at 51.2K both placements.
SEEDS_AT_25K = {
    "short-c5-d5-r01": range(1, 8), "short-c5-d5-r01-separable": range(1, 6), "short-c17-d5-r01-flop": range(1, 6)
}  # fmt: skip
SEEDS_AT_31K = {
    "short-c5-d6-r01": range(1, 3), "short-c17-d6-r01-flop": range(3), "short-c5-d6-r01-separable": range(3)
}  # fmt: skip
ENDS_OF_51K = ("short-c5-d10-r05", "short-c5-d10-r36")
# Tried in turn where a run fails: how steps run, never what they compute.
PLAIN: tuple[dict[str, Any], ...] = ({},)
SEARCHING: tuple[dict[str, Any], ...] = ({}, {"lanes": False}, {"lanes": False, "cuda_graphs": False})
PLACING: tuple[dict[str, Any], ...] = ({}, {"cuda_graphs": False})
LONG: tuple[dict[str, Any], ...] = ({"acceleration": "compile"}, {})  # half a minute of compiling pays for itself


@dataclass(frozen=True)
class Planned:
    name: str
    kind: Literal["train", "place", "search"]
    seconds: float
    design: Callable[[Path], AnyDesign] | None = None  # from the folder of all runs: some need what others found
    recipe: str = "fast"
    settings: dict[str, Any] = field(default_factory=dict)
    seed: int = 0
    strategy: str = ""
    stop_after: int = 0  # a search stops after so many epochs of its schedule
    folder: str = ""  # of its run, where that is not its name
    needs: str = ""  # a run that must be finished
    teacher: str = ""
    carried: bool = False  # may begin in one window and go on in another
    variants: tuple[dict[str, Any], ...] = PLAIN
    data: str = "cifar100"

    @property
    def place(self) -> str:
        return self.folder or self.name


def planned_runs() -> list[Planned]:
    """Every network once, at the first place where one of the experiments asks for it."""
    grid5, grid6 = _grid(5), _grid(6)
    listed = [
        *_likely_rivals_beside_more_seeds(),
        _by_the_paper("paper-600-b512-seed0", 5, 0.85, **BATCH_512),
        *_grid(8),
        *_first_epochs(),
        *_arithmetic(),
        *_rows("recycled"),
        *(_placement(depth, seconds, seed) for depth, seconds in ((5, 190), (6, 240)) for seed in (0, 1)),
        _placement(8, 640, epochs=60),
        *_repeated(SEEDS_AT_25K),
        _darts("darts-c16-seed2-12", "darts-c16-seed2", 12, 28, seed=2),
        *grid5,
        *_rows("balancing", depth=5),
        *_rows("separable", depth=5),
        *grid6[:2],
        *(_short(_network(cells), f"short-random-{n}") for n, cells in enumerate(_random(4))),
        _short_of_found("short-darts-released-seed2", "darts-c16-seed2", "darts-c16-seed2-12"),
        _by_the_paper("paper-600-seed0", 5, 2.3),
        *_rows("channels-depth"),
        *(run for run in _rows("relu-sharing") if "-c1-" in run.name),
        _darts("darts-c16-n5-seed2-8", "darts-c16-n5-seed2", 8, 13, seed=2, nodes=5),
        _short_of_found("short-n5-d5", "darts-c16-n5-seed2", "darts-c16-n5-seed2-8"),
        _short_of_found("short-n5-d6", "darts-c16-n5-seed2", "darts-c16-n5-seed2-8", depth=6),
        *_distillation(),
        *grid6[2:],
        *(run for depth in (6, 8, 10) for name in ("recycled", "balancing", "separable") for run in _rows(name, depth)),
        *_rows("placement"),
        _tiny(),
        _darts("darts-c5-seed2-15", "darts-c5-seed2", 15, 22, seed=2, channels=5),
        _short_of_found("short-darts-c5-seed2", "darts-c5-seed2", "darts-c5-seed2-15"),
        _darts("darts-c16-seed0-15", "darts-c16-seed0", 15, 28, seed=0),
        *_nodes_by_equal_searches(),
        _darts("darts-c5-seed2-50", "darts-c5-seed2", 50, 22, seed=2, channels=5),
        _short_of_found("short-darts-c5-seed2-50", "darts-c5-seed2", "darts-c5-seed2-50"),
        *_rows("cifar100"),
        _by_the_paper("paper-600-d6-seed0", 6, 3.2),
        *_grid(8),
        _darts("darts-c16-seed2-50", "darts-c16-seed2", 50, 28, seed=2),
        _short_of_found("short-darts-c16-seed2-50", "darts-c16-seed2", "darts-c16-seed2-50"),
    ]
    return _each_once(listed)


def _each_once(runs: list[Planned]) -> list[Planned]:
    found: dict[str, Planned] = {}
    for run in runs:
        found.setdefault(run.name, run)
    return list(found.values())


def _network(cells: Genotype, depth: int = 5, places: tuple[int, ...] = (0, 1)) -> Design:
    return Design(cells, 5, depth, places, IMAGE, CLASSES, conv_stack="paper")


def _random(count: int) -> list[Genotype]:
    return list(random_cells(CellSpace(7), count, 0).values())


def _short(design: AnyDesign, name: str, seed: int = 0) -> Planned:
    depth, channels = getattr(design, "depth", 5), getattr(design, "channels", 5)
    wide = 1.0 if channels <= 8 else 1.25 if channels <= 12 else 1.6
    grouped = 2.0 if getattr(design, "convolution", "vanilla") == "separable" else 1.0
    from_elsewhere = 1.9 if getattr(design, "genotype", SPHYNX).name in ELSEWHERE else 1.0
    seconds = SHORT_EPOCHS * EPOCH_SECONDS * depth / 5 * wide * grouped * from_elsewhere
    return Planned(name, "train", seconds, lambda _runs: design, settings={"epochs": SHORT_EPOCHS}, seed=seed)


def _rows(experiment: str, depth: int | None = None) -> list[Planned]:
    return [
        _short(design_of(row, IMAGE, CLASSES, cells_of(row)), _row_name(row))
        for row in EXPERIMENTS[experiment].rows
        if row.data == "cifar100" and not row.distilled and not row.cells.startswith(SEARCHED)
        if depth is None or row.depth == depth
    ]


def _row_name(row: Row) -> str:
    """A network's, whichever experiment it is a row of."""
    places = "" if row.reduce_at is None else f"-r{''.join(map(str, row.reduce_at))}"
    cells = "" if row.cells == "sphynx" else f"-{row.cells}"
    options = "".join(f"-{value or name}" for name, value in row.options.items()).replace("_", "-")
    return f"short-c{row.channels}-d{row.depth}{places}{cells}{options}"


def _repeated(seeds: Mapping[str, Sequence[int]]) -> list[Planned]:
    """Plan these seeds of networks that are compared; a network's own name stands for seed 0."""
    compared = ("balancing", "separable", "placement")
    rows = {_row_name(row): row for name in compared for row in EXPERIMENTS[name].rows if row.data == "cifar100"}
    return [
        _short(
            design_of(rows[name], IMAGE, CLASSES, cells_of(rows[name])), f"{name}-seed{seed}" if seed else name, seed
        )
        for name, wanted in seeds.items()
        for seed in wanted
    ]


def _grid(depth: int) -> list[Planned]:
    """(0,1) and D/3, 2D/3 first: a claim that needs two points only."""
    first = [f"short-c5-d{depth}-r01", f"short-c5-d{depth}-r{depth // 3}{2 * depth // 3}"]
    return sorted(_rows("placement-grid", depth), key=lambda run: run.name not in first)


def _placement(depth: int, seconds: float, seed: int = 0, epochs: int = 30, *, likely: bool = False) -> Planned:
    settings = {"epochs": epochs, "batch_size": 128, "learning_rate": 0.05, **({"rivals": "likely"} if likely else {})}
    form, design = "likely" if likely else "released-tau1000", _network(SPHYNX, depth)
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
    search, needs = "darts-c5-n5-seed2", "darts-c5-n5-seed2-15"
    return [
        _darts(needs, search, 15, 10, seed=2, channels=5, nodes=5),
        _short_of_found("short-n5-c5-d5", search, needs),
        _short_of_found("short-n5-c5-d6", search, needs, depth=6),
    ]


def _darts(name: str, folder: str, epochs: int, epoch_seconds: float, *, seed: int, **settings: float) -> Planned:
    return Planned(
        name, "search", epochs * epoch_seconds, recipe="released", settings=settings, seed=seed,
        strategy="darts-unrolled", stop_after=epochs, folder=folder, carried=True, variants=SEARCHING,
    )  # fmt: skip


def _short_of_found(name: str, search: str, needs: str, depth: int = 5) -> Planned:
    seconds = SHORT_EPOCHS * EPOCH_SECONDS * depth / 5
    design = partial(_load_found, search=search, depth=depth)
    return Planned(name, "train", seconds, design, settings={"epochs": SHORT_EPOCHS}, needs=needs)


def _load_found(runs: Path, search: str, depth: int) -> Design:
    """The released rule: the cells of the epoch with the best held-out accuracy, of those that ran."""
    tried = [file.read_text().splitlines() for file in runs.glob(f"{search}*/metrics.jsonl")]
    rows = [json.loads(line) for line in max(tried, key=len)]
    return _network(Genotype.from_json(max(rows, key=lambda row: float(row["held_out"]))["genotype"]), depth)


def _by_the_paper(name: str, depth: int, epoch_seconds: float, **settings: Any) -> Planned:
    design, watched = _network(SPHYNX, depth), {"test_each_epoch": True, **settings}
    seconds = 600 * epoch_seconds
    return Planned(name, "train", seconds, lambda _runs: design, "paper-cifar100", watched, carried=True, variants=LONG)


def _arithmetic() -> list[Planned]:
    """The 25.6K network by the paper's recipe in 40 epochs: in bf16, in fp32, without Nesterov's momentum, and in TF32,
    which fp32 was on this GPU. Seed by seed, so that whatever is finished compares."""
    design = _network(SPHYNX)

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
        _darts(f"darts-first-c{width}", f"darts-first-c{width}-seed{seed}", 1, 45, seed=seed, channels=width)
        for width, seed in ((8, 0), (12, 0), (5, 0), (16, 1))
    ]
    warm = _darts("darts-first-c16-warm", "darts-first-c16-warm-seed0", 6, 15, seed=0, warmup=0.1)
    return [*widths[:1], warm, *widths[1:]]


def _tiny() -> Planned:
    """The smallest of the paper's networks for Tiny-ImageNet."""
    row = EXPERIMENTS[TINY].rows[0]
    design = design_of(row, *DATA_SETS[TINY], cells_of(row))
    seconds, settings = SHORT_EPOCHS * TINY_EPOCH_SECONDS, {"epochs": SHORT_EPOCHS}
    return Planned("short-tiny-c5-d5", "train", seconds, lambda _runs: design, settings=settings, data=TINY)


def _distillation() -> list[Planned]:
    """Plan distillation by squared logits from the same cells with ReLUs inside, larger; and the student without a
    teacher.

    The paper's formula sums squares over the classes; its text says mean squared error, as torch's is called, a
    hundredth of it.
    """
    row = next(row for row in EXPERIMENTS["distillation"].rows if "inner_relus" in row.options)
    teacher, student = design_of(row, IMAGE, CLASSES, cells_of(row)), _network(SPHYNX)

    def taught(name: str, by: str, **settings: str) -> Planned:
        learned = {"epochs": 200, "distillation": "squared"} | settings
        return Planned(name, "train", 390, lambda _runs: student, settings=learned, needs=by, teacher=by)

    return [
        Planned("teacher-100", "train", 330, lambda _runs: teacher, settings={"epochs": 100}),
        taught("distilled-200", "teacher-100"),
        Planned("undistilled-200", "train", 184, lambda _runs: student, settings={"epochs": 200}),
        Planned("teacher-200", "train", 630, lambda _runs: teacher, settings={"epochs": 200}),
        taught("distilled-200-of-200", "teacher-200"),
        taught("distilled-mean-200-of-200", "teacher-200", distillation_reduction="mean"),
    ]
