"""One ResNet18 for CIFAR-100 taken down to budgets of ReLUs by every method, from one teacher and by one recipe.

    teacher   ResNet18, the original of all, kept in eight bits
    rivals    the paper's four, at one point each of its figure
    ours      `auto`: stream and channels at 50K and 25K
    later     what came after the paper, at 50K and 25K; autorep at 12.9K as well
    seeds     at 25K two more seeds of ours and of the best rival
    own       the stream at 25K for as many epochs as its minutes allow beside the others'
    table     all that is finished, beside published rows; packs results.tgz, and weights into state.NN

    python -m reproduction.reduction rivals table --data cifar-packed -o runs/reduction --minutes 9 --jobs 3

All kept results come from the teacher in results/reduction/teacher, which `--teacher` takes in the place of a new one.
Each call goes on where the one before was stopped; `--state` takes up what `table` packed on another machine:
results.tgz has all designs, masks and results; state.NN the weights in eight bits, the teacher's and then as many
reduced networks' as `--limit` allows, our own first, then the most accurate. A further call of `table` with `--weights`
packs those that were left out. `--jobs` reductions at a time share the device, each in a process of its own (on a GPU:
under MPS). All networks are trained on the same 96 % of the training images, on the same views of them, whose logits
the teacher computes once.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import sphynx
from reproduction import STARTED
from reproduction.compact import keep_compact
from reproduction.gpu.state import pack_results, pack_state, unpack
from reproduction.kept_reductions import ASKED, CALLS, TEACHER, tried_folders
from reproduction.tasks import Task, run_tasks
from sphynx.data.images import Data
from sphynx.network.trained import load_trained
from sphynx.reduce.results import REDUCTION, ReduceResult
from sphynx.reduce.settings import Method
from sphynx.report.literature import read_published
from sphynx.run.folder import RunFolder
from sphynx.run.settings import AUTO
from sphynx.run.work import pick_device
from sphynx.space.artifact import MODEL
from sphynx.space.design import stem_for
from sphynx.space.reference import ResNet18Design
from sphynx.space.tally import Shape
from sphynx.train.job import Job
from sphynx.train.loop import HELD_OUT_SEED, open_views
from sphynx.train.processes import Processes
from sphynx.train.recipe import load_recipe
from sphynx.train.results import RESULT, TrainResult
from sphynx.train.runs import as_teacher
from sphynx.train.views import VIEWS

TABLE = "table"
TRAINED = "teacher-trained"  # in full precision, as only the machine that trained it has it
LEAST_TEACHER = 0.775
AIMS: Sequence[tuple[Method, str, float]] = [("auto", "50k", 0.76), ("auto", "25k", 0.735), ("channels", "50k", 0.738)]
# ResNet18 reached 78.08 % by it, in 1.4 minutes of an H200 (results/cifar100/teacher-resnet18-100-mix-b.json).
TEACHER_SETTINGS = {
    "epochs": 100, "learning_rate": 0.2, "mixup": 0.2, "cutmix": 0.0, "trivial_augment": False, "ema": 0.0,
    "norm_batches": 0, "decay_on": "all", "grad_clip": 5.0,
}  # fmt: skip
EPOCHS, OWN_EPOCHS = 120, 480
VIEW_EPOCHS = 60  # 10 MB each
COMPILED: frozenset[Method] = frozenset({"auto", "stream", "delphi", "safenet", "autorep"})  # others gain too little
HELD_OUT = 0.04
SEARCH_EPOCHS: Mapping[Method, int] = {
    "channels": 24, "delphi": 34, "safenet": 40, "deepreduce": 20, "cryptonas": 20,
    "snl": 40, "senet": 20, "autorep": 40,
}  # fmt: skip
DEFAULT_SEARCH_EPOCHS = 24
MORE_SEEDS = (1, 2)
STATE_LIMIT = 48.0  # MiB
OWN: frozenset[str] = frozenset({"auto", "stream", "channels"})
MOST_PUBLISHED_RELUS = 60_000


@dataclass(frozen=True)
class Point:
    method: Method
    relu_budget: str
    seed: int = 0
    epochs: int = EPOCHS

    @property
    def name(self) -> str:
        longer = "" if self.epochs == EPOCHS else f"-{self.epochs}"
        return f"{self.method}-{self.relu_budget}{longer}-seed{self.seed}"


RIVALS: tuple[Method, ...] = ("delphi", "safenet", "deepreduce", "cryptonas")
LATER: tuple[Method, ...] = ("snl", "senet", "autorep")
STAGES: Mapping[str, Sequence[Point]] = {
    "rivals": [Point(method, "50k") for method in RIVALS],
    "ours": [Point("auto", "50k"), Point("auto", "25k")],
    "later": [
        *(Point(method, budget) for budget in ("50k", "25k") for method in LATER),
        Point("deepreduce", "25k"),
        Point("autorep", "12.9k"),
    ],
    "own": [Point("stream", "25k", epochs=OWN_EPOCHS)],
}


@dataclass(frozen=True)
class Plan:
    data: Data
    out: Path
    settings: Mapping[str, Any] = field(default_factory=dict)  # of every reduction, in the place of its own
    jobs: int = 1
    small: Mapping[str, Any] = field(default_factory=dict)  # width, teacher, recipe, budgets by name: to try it out

    def tasks(self, points: Sequence[Point]) -> dict[str, Task]:
        reductions = {
            point.name: Task(partial(self._reduce, point), self.out / point.name / REDUCTION, needs=(VIEWS,))
            for point in points
        }
        found = {TEACHER: Task(self._train_teacher, self.out / TEACHER / RESULT), **reductions}
        if not all(task.makes.is_file() for task in reductions.values()):
            found[VIEWS] = Task(self._make_views, self.out / VIEWS, needs=(TEACHER,))
        return found

    def teacher_accuracy(self) -> float:
        file = self.out / TEACHER / RESULT
        return TrainResult.from_json(json.loads(file.read_text()), where=str(file)).accuracy

    def results(self) -> dict[str, ReduceResult]:
        files = sorted(self.out.glob(f"*/{REDUCTION}"))
        return {file.parent.name: ReduceResult.from_json(json.loads(file.read_text())) for file in files}

    def points(self, stage: str) -> Sequence[Point]:
        return self._more_seeds() if stage == "seeds" else STAGES.get(stage, ())

    def _more_seeds(self) -> Sequence[Point]:
        """Ours and whichever rival is best at 25K with the first seed."""
        results = self.results()
        rivals = [method for method in (*RIVALS, *LATER) if Point(method, "25k").name in results]
        best = sorted(rivals, key=lambda method: results[Point(method, "25k").name].best.accuracy)[-1:]
        methods: list[Method] = ["auto", *best]
        return [Point(method, "25k", seed) for method in methods for seed in MORE_SEEDS]

    def _train_teacher(self) -> None:
        """Train it and keep it in eight bits, in which it is small enough to be taken along: that is what teaches."""
        image, width = Shape(*self.data.image), int(self.small.get("width", 64))
        design = ResNet18Design(width, image, self.data.classes, stem_for("auto", image.height))
        settings = {**TEACHER_SETTINGS, **self.small.get("teacher", {})}
        trained = self.out / TRAINED
        sphynx.train_network(design, self.data, out=trained, recipe="teacher", settings=settings, resume=True)
        keep_compact(trained, self.out / TEACHER, self.data)

    def _reduce(self, point: Point) -> None:
        if self.teacher_accuracy() < LEAST_TEACHER and not self.small:
            raise SystemExit(f"the teacher is below {LEAST_TEACHER:.1%}: nothing is reduced from it")
        settings = {
            "held_out": HELD_OUT,
            "search_epochs": SEARCH_EPOCHS.get(point.method, DEFAULT_SEARCH_EPOCHS),
            "training.epochs": point.epochs,
            "training.view_epochs": VIEW_EPOCHS,
            "training.acceleration": "compile" if point.method in COMPILED else "graph",
            **self.settings,
        }
        with self._recorded(point, settings):
            sphynx.reduce_network(
                self.out / TEACHER,
                self.data,
                relu_budget=self.small.get(point.relu_budget, point.relu_budget),
                out=self.out / point.name,
                method=point.method,
                recipe=self._recipe,
                settings=settings,
                seed=point.seed,
                views=self.out / VIEWS,
                resume=True,
            )

    @contextmanager
    def _recorded(self, point: Point, settings: Mapping[str, Any]) -> Iterator[None]:
        """Write what was asked for, and the minutes of all calls together: a method's own steps are in them."""
        file, began = self.out / point.name / ASKED, time.monotonic()
        before = float(json.loads(file.read_text())["minutes"]) if file.is_file() else 0.0

        def write() -> None:
            minutes = round(before + (time.monotonic() - began) / 60, 3)
            asked = {**vars(point), "recipe": self._recipe, "settings": settings, "minutes": minutes, "jobs": self.jobs}
            RunFolder(file.parent).write_json(ASKED, asked)

        file.parent.mkdir(parents=True, exist_ok=True)
        write()
        try:
            yield
        finally:
            write()

    def _make_views(self) -> None:
        """Make them for all reductions together, whose processes then read one file."""
        trained = load_trained(self.out / TEACHER)
        data = replace(self.data, mean=trained.mean, std=trained.std)
        given = {name.removeprefix("training."): value for name, value in self.settings.items() if "training." in name}
        held_out = float(self.settings.get("held_out", HELD_OUT))
        recipe = load_recipe(self._recipe, {"view_epochs": VIEW_EPOCHS, **given, "held_out": held_out})
        teacher, processes = as_teacher(trained, data), Processes(pick_device(AUTO))
        job = Job(teacher.design, data, recipe, self.out, teacher=teacher, views=self.out / VIEWS, processes=processes)
        open_views(job, data.train.split(held_out, HELD_OUT_SEED)[0])

    @property
    def _recipe(self) -> str:
        return str(self.small.get("recipe", "distil"))

    def by_worth(self) -> list[str]:
        """Folders of finished networks, those first whose weights are to be kept first; further seeds come last, and
        what `auto` tried and did not keep before them."""
        results = self.results()

        def order(name: str) -> tuple[bool, bool, float]:
            return not name.endswith("-seed0"), name.split("-")[0] not in OWN, -results[name].best.accuracy

        folders: list[str] = []
        for name in sorted(results, key=order):
            folders += [
                str(one.relative_to(self.out)) for one in tried_folders(self.out / name, results[name]).values()
            ]
        return sorted(folders, key=lambda folder: ("-seed0" not in folder, folder.endswith("/run")))

    def pack_results(self, kept: Path) -> None:
        """Pack what is small of all that is finished."""
        pack_results(self.out, kept, {TEACHER, CALLS, "logs", *self.results()})

    def print_table(self, kept: Path, limit: float, wanted: Sequence[str] = ()) -> None:
        """Pack what a further machine needs, too: all that is small, and weights up to `limit` MiB, those of `wanted`
        folders, or the teacher's and others by their worth."""
        print(f"teacher: {self.teacher_accuracy():.2%}")
        print(
            "| network | method | ReLUs | comparisons | squares | truncations | accuracy | as the teacher | minutes |"
        )
        print("|---|---|---:|---:|---:|---:|---:|---:|---:|")
        for name, result in self.results().items():
            for one in result.tried:
                counts = one.counts
                marked = " (kept)" if len(result.tried) > 1 and one.method == result.best.method else ""
                print(
                    f"| {name} | {one.method}{marked} | {counts.relus:,} | {counts.comparisons:,} "
                    f"| {counts.squares:,} | {counts.truncations:,} | {one.accuracy:.2%} | {one.agreement:.2%} "
                    f"| {one.minutes:.1f} |"
                )
        for row in read_published():
            if row.data == "cifar100" and row.relus and row.relus <= MOST_PUBLISHED_RELUS:
                print(f"| published | {row.method} | {row.relus:,} | | | | {row.accuracy:.2f}% | | |")
        self.pack_results(kept)
        weights = [(name, "compact") for name in wanted or self.by_worth()]
        if not wanted:
            weights = [(TEACHER, "model"), *weights]
        for line in pack_state(self.out, kept, weights, int(limit * 2**20)):
            print(line)


def main(words: Sequence[str] | None = None, began: float | None = None) -> int:
    """Return 3 where the time was over before all was done, or the teacher was not good enough."""
    began = time.monotonic() if began is None else began
    parser = argparse.ArgumentParser(prog="python -m reproduction.reduction", description=__doc__.splitlines()[0])
    parser.add_argument("stages", nargs="+", choices=[TEACHER, *STAGES, "seeds", TABLE])
    parser.add_argument("--data", default="cifar100", help="or a folder with its packed files")
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=60.0, help="then whatever runs is stopped, and saves")
    parser.add_argument("--jobs", type=int, default=1, help="reductions at a time")
    parser.add_argument("--only", default="", help="methods, such as snl,senet: no others of these stages")
    parser.add_argument(
        "--teacher", type=Path, help="its run folder, such as results/reduction/teacher, in the place of training one"
    )
    parser.add_argument("--state", type=Path, help="a folder with what `table` packed")
    parser.add_argument("--keep", type=Path, help="where `table` packs; by default OUT/kept")
    parser.add_argument("--limit", type=float, default=STATE_LIMIT, help="of all state.NN together, in MiB")
    parser.add_argument(
        "--weights", default="", help="networks to pack, such as snl-50k-seed0,auto-50k-seed0/stream/run"
    )
    parser.add_argument("--settings", type=json.loads, default={}, help='of every reduction: {"training.epochs": 60}')
    parser.add_argument("--small", type=json.loads, default={}, help="to try it out: width, teacher, recipe, budgets")
    options = parser.parse_args(words)
    plan = Plan(sphynx.open_data(options.data), options.out, options.settings, options.jobs, options.small)
    options.out.mkdir(parents=True, exist_ok=True)
    if options.state is not None:
        unpack(options.state, options.out)
    if options.teacher is not None and not (options.out / TEACHER / MODEL).is_file():
        shutil.copytree(options.teacher, options.out / TEACHER, dirs_exist_ok=True)
    points = [point for stage in options.stages for point in plan.points(stage)]
    tasks = plan.tasks([point for point in points if not options.only or point.method in options.only.split(",")])
    seconds = 60 * options.minutes - (time.monotonic() - began)
    kept = options.keep or options.out / "kept"
    keep = partial(plan.pack_results, kept) if TABLE in options.stages else None
    done = run_tasks(tasks, list(tasks), jobs=options.jobs, seconds=seconds, logs=options.out / "logs", keep=keep)
    with (options.out / CALLS).open("a") as file:
        call = {"stages": options.stages, "jobs": options.jobs, "minutes": round((time.monotonic() - began) / 60, 2)}
        file.write(json.dumps(call) + "\n")
    if TABLE in options.stages and tasks[TEACHER].makes.is_file():
        wanted = options.weights.split(",") if options.weights else []
        plan.print_table(kept, options.limit, wanted)
    return 0 if done else 3


if __name__ == "__main__":
    raise SystemExit(main(began=STARTED))
