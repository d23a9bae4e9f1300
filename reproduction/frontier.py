"""Stream networks of 25.6K ReLUs for CIFAR-100: by Muon, at a rate chosen on held-out images, from better teachers.

    teachers   two wide ResNets, kept in eight bits
    muon       SGD beside three rates of Muon, two seeds each, 40 epochs on nine tenths of the training images
    final      the best setting on all training images, taught by the mean of all teachers: three seeds, test images

    python -m reproduction.frontier teachers muon final --data cifar100 -o runs/frontier --given stream-cifar100-102k

Rules, written before the runs:

- `muon`: the setting whose two seeds have the highest mean accuracy on the held-out tenth, final epoch, is taken,
  however small its lead. All learn from kept views of one teacher, the first of `--given` (else the first wide
  ResNet), which has seen the held-out images; this favours none. With s = 0.5 points between seeds, pooled over four
  settings (4 degrees), two seeds beside two can show 1.4 points at 5 %: below that, "Muon is better" or "this rate is
  better" is not shown.
- `final`: as many epochs as `--final-minutes` allow at the pace of all its runs side by side, measured over three
  epochs, at most 600, the same for all. Test accuracy of the final epoch; the mean over seeds counts. The networks of
  five blocks kept before have 75.19 +- 0.40 (three seeds, 480 epochs, teacher `stream-cifar100-102k`): three beside
  three can show 0.9 points at 5 %. Muon and the teachers changed together, so `final` shows what both are worth, and
  not which. A network that is kept for use is that of seed 0, whatever the others have.

What came of it is in docs/results/stream.md: Muon at 0.02; `final` was cut off. From the given teacher alone it is

    mkdir -p runs/muon
    echo '{"settings": {"optimizer": "muon", "kernel_learning_rate": 0.02}}' > runs/muon/choice.json
    python -m reproduction.frontier final --data cifar100 -o runs/muon --given stream-cifar100-102k --trained 0 --jobs 3

where Muon and the number of epochs alone differ from the networks kept before, whose teacher is the same.
Other sizes: `--finals 51k/seed-0 --epochs 600`; rules for all of them are in docs/results/rules.md. A run that one call
does not end goes on in the next with the same `--out`, on another machine with the files of `--keep` as `--state`.

Several trainings at a time share the device, each in a process of its own (on a GPU: under MPS). Every call goes on
where the one before was stopped, as far as `--minutes` allow; OUT/summary.json holds what is known.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import sphynx
from reproduction import STARTED
from reproduction.gpu.state import pack_results, pack_state, unpack
from reproduction.tasks import Task, run_tasks
from sphynx.data.images import Data
from sphynx.network.trained import load_model, save_model
from sphynx.run.settings import AUTO
from sphynx.run.work import pick_device
from sphynx.space.artifact import MODEL
from sphynx.space.reference import WideResNetDesign
from sphynx.space.stream import StreamDesign, stages_from_text
from sphynx.space.tally import Shape
from sphynx.train.job import Job
from sphynx.train.loop import HELD_OUT_SEED, open_views
from sphynx.train.processes import Processes
from sphynx.train.recipe import load_recipe
from sphynx.train.results import RESULT
from sphynx.train.views import VIEWS
from sphynx.zoo.teachers import add_teacher

STAGES = ("teachers", "muon", "final")
TEACHERS, TEACHER_EPOCHS = 2, 60
TUNING_SEEDS, TUNING_EPOCHS, HELD_OUT = 2, 40, 0.1
RATES = (0.01, 0.02, 0.04)
VIEW_EPOCHS, MOST_EPOCHS, PACE_EPOCHS = 64, 600, 4
START_SECONDS = 45.0  # of a training, until its first epoch, and of its end
NETWORKS = {
    "25k": "16:64:24 8:128:72x2 4:256:316x2",
    "12k": "16:64:12 8:128:36x2 4:256:158x2",
    "51k": "16:96:48 8:192:144x2 4:384:632x2",
    "102k": "16:96:40x2 8:192:160x4 4:384:640x4",  # as it is shipped
}
FIRST = "25k"  # that the rate is tuned for
SETTINGS: dict[str, Mapping[str, Any]] = {
    "sgd": {"optimizer": "sgd"},
    **{f"muon-{rate}": {"optimizer": "muon", "kernel_learning_rate": rate} for rate in RATES},
}
MOST_IN_FULL = 44 << 20  # bytes of a network that is taken along as it is; a larger one is, in eight bits


@dataclass(frozen=True)
class Plan:
    data: Data
    out: Path
    given: tuple[str, ...]  # teachers that are trained already
    trained: int  # wide ResNets
    finals: tuple[str, ...]  # NETWORK/seed-N
    final_minutes: float
    epochs: int  # of `final`; 0: as many as its minutes allow
    changed: Mapping[str, Any]  # settings, stages, wide, tuning_epochs, view_epochs, for a smoke test

    @cached_property
    def tasks(self) -> dict[str, Task]:
        """In the order in which they are started."""
        teachers = [f"teacher-{number}" for number in range(self.trained)]
        tunings = {f"{name}-{seed}": (name, seed) for seed in range(TUNING_SEEDS) for name in SETTINGS}
        tuned_by = () if self.given else teachers[:1]
        held_out, whole = self.out / "held-out" / VIEWS, self.out / "all" / VIEWS
        found = {"held-out-views": Task(partial(self.make_views, held_out, tuning=True), held_out, tuple(tuned_by))}
        for number, name in enumerate(teachers):
            found[name] = Task(partial(self.train_teacher, number), self.out / name / RESULT)
        for name, (setting, seed) in tunings.items():
            work = partial(self.train_tuning, name, SETTINGS[setting], seed)
            found[name] = Task(work, self.out / name / RESULT, ("held-out-views",))
        found["choice"] = Task(self.choose, self.choice_file, tuple(tunings), quick=True)
        found["all-views"] = Task(partial(self.make_views, whole, tuning=False), whole, tuple(teachers))
        paces = [] if self.epochs else [f"pace-{one.replace('/', '-')}" for one in self.finals]
        for name, one in zip(paces, self.finals, strict=False):
            work = partial(self.train_final, one, self.out / name, epochs=PACE_EPOCHS)
            found[name] = Task(work, self.out / name / RESULT, ("choice", "all-views"))
        found["epochs"] = Task(self.decide_epochs, self.epochs_file, tuple(paces), quick=True)
        for one in self.finals:
            work = partial(self.train_final, one, self.out / one)
            found[one.replace("/", "-")] = Task(work, self.out / one / RESULT, ("choice", "all-views", "epochs"))
        return found

    def names(self, stages: Sequence[str]) -> list[str]:
        """Which tasks belong to the stages."""
        names = list(self.tasks)
        last = names.index("choice")
        teachers = [name for name in names if name.startswith("teacher-")]
        parts = {
            "teachers": teachers,
            "muon": [name for name in names[: last + 1] if name not in teachers],
            "final": names[last + 1 :],
        }
        return [name for name in names if any(name in parts[stage] for stage in stages)]

    @property
    def choice_file(self) -> Path:
        return self.out / "choice.json"

    @property
    def epochs_file(self) -> Path:
        return self.out / "epochs.json"

    def design(self, network: str) -> StreamDesign:
        shape = Shape(*self.data.image)
        stages, stem = stages_from_text(self.changed.get("stages", NETWORKS[network]), shape)
        return StreamDesign(stages, shape, self.data.classes, stem.stride, stem_kernel=stem.kernel)

    def values(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        return {"acceleration": "compile", **settings, **self.changed.get("settings", {})}

    def train_teacher(self, number: int) -> None:
        """In eight bits a teacher is small enough to be kept, and its student learns from what is kept."""
        out = self.out / f"teacher-{number}"
        depth, width = self.changed.get("wide", (16, 8))
        design = WideResNetDesign(depth, width, Shape(*self.data.image), self.data.classes)
        settings = self.values({"epochs": self.changed.get("tuning_epochs", TEACHER_EPOCHS)})
        sphynx.train_network(design, self.data, out=out, recipe="teacher", settings=settings, seed=number, resume=True)
        save_model(out, load_model(out), compact=True)

    def make_views(self, file: Path, *, tuning: bool) -> None:
        own = [str(self.out / f"teacher-{number}") for number in range(self.trained)]
        teachers = [*self.given, *own][:1] if tuning else [*self.given, *own]
        recipe = load_recipe("frontier", self.values(self.tuning_values if tuning else self.final_values))
        device = pick_device(AUTO)
        job = Job(self.design(FIRST), self.data, recipe, file.parent, views=file, processes=Processes(device))
        images, _ = self.data.train.split(recipe.held_out, HELD_OUT_SEED)
        open_views(add_teacher(job, teachers), images)

    @property
    def tuning_values(self) -> dict[str, Any]:
        epochs = self.changed.get("tuning_epochs", TUNING_EPOCHS)
        return {"epochs": epochs, "view_epochs": epochs, "held_out": HELD_OUT}

    @property
    def final_values(self) -> dict[str, Any]:
        return {"view_epochs": self.changed.get("view_epochs", VIEW_EPOCHS)}

    def train_tuning(self, name: str, settings: Mapping[str, Any], seed: int) -> None:
        self._train(self.design(FIRST), self.out / name, {**self.tuning_values, **settings}, seed, "held-out")

    def choose(self) -> None:
        """The setting with the highest mean; one that has not all its seeds does not count."""
        found = {
            setting: [read(self.out / f"{setting}-{seed}")["held_out_accuracy"] for seed in range(TUNING_SEEDS)]
            for setting in SETTINGS
            if all((self.out / f"{setting}-{seed}" / RESULT).is_file() for seed in range(TUNING_SEEDS))
        }
        if found:
            winner = max(found, key=lambda setting: statistics.fmean(found[setting]))
            write(self.choice_file, {"winner": winner, "held_out_accuracy": found, "settings": dict(SETTINGS[winner])})

    def decide_epochs(self) -> None:
        """As many as are wanted, or as the minutes allow at the slowest run's pace beside the others."""
        if self.epochs:
            write(self.epochs_file, {"epochs": self.epochs})
            return
        rows = [
            [json.loads(line)["seconds"] for line in file.read_text().splitlines()][1:]
            for file in self.out.glob("pace-*/metrics.jsonl")
        ]
        pace = max((statistics.median(seconds) for seconds in rows if seconds), default=1.0)
        fit = max(1, int((60 * self.final_minutes - START_SECONDS) / pace))
        write(self.epochs_file, {"epochs": min(MOST_EPOCHS, fit), "seconds_per_epoch": pace})

    def train_final(self, one: str, out: Path, epochs: int | None = None) -> None:
        network, _, seed = one.partition("/seed-")
        settings = json.loads(self.choice_file.read_text())["settings"] | self.final_values
        settings["epochs"] = epochs or self.epochs or json.loads(self.epochs_file.read_text())["epochs"]
        if settings["epochs"] < 20:
            settings["warmup_epochs"] = 1
        self._train(self.design(network), out, settings, int(seed), "all")

    def _train(self, design: StreamDesign, out: Path, settings: Mapping[str, Any], seed: int, views: str) -> None:
        started, values, kept = time.monotonic(), self.values(settings), self.out / views / VIEWS
        sphynx.train_network(
            design, self.data, out=out, recipe="frontier", settings=values, views=kept, seed=seed, resume=True
        )
        print(f"{time.monotonic() - started:.0f} s", flush=True)

    def summarise(self) -> dict[str, Any]:
        """Tell of everything that is finished."""
        results = {file.parent.relative_to(self.out).as_posix(): read(file.parent) for file in self.out.rglob(RESULT)}
        finals = {name: one for name, one in sorted(results.items()) if name in self.finals}
        by_network: dict[str, list[float]] = {}
        for name, one in finals.items():
            by_network.setdefault(name.partition("/")[0], []).append(one["accuracy"])
        return {
            "choice": json.loads(self.choice_file.read_text()) if self.choice_file.is_file() else None,
            "epochs": json.loads(self.epochs_file.read_text()) if self.epochs_file.is_file() else None,
            "test_accuracy": {
                name: {"mean": statistics.fmean(own), "std": statistics.stdev(own) if len(own) > 1 else None}
                for name, own in by_network.items()
            },
            "runs": {
                name: {key: one.get(key) for key in ("accuracy", "held_out_accuracy", "epochs", "minutes", "seed")}
                for name, one in sorted(results.items())
            },
        }

    def keep(self, folder: Path, limit: int) -> list[str]:
        """Pack what is small, teachers, networks of seed 0, and as far as the limit allows what goes on elsewhere."""
        pack_results(self.out, folder)
        finals = {one: (self.out / one / RESULT).is_file() for one in self.finals}
        weights = [(run.name, "model") for run in sorted(self.out.glob("teacher-*")) if (run / RESULT).is_file()]
        weights += [(one, self._form(one)) for one, done in finals.items() if done and one.endswith("/seed-0")]
        return pack_state(self.out, folder, [*weights, *((one, "train") for one in finals if not finals[one])], limit)

    def _form(self, one: str) -> str:
        return "model" if (self.out / one / MODEL).stat().st_size <= MOST_IN_FULL else "compact"


def read(run: Path) -> dict[str, Any]:
    return dict(json.loads((run / RESULT).read_text()))


def write(file: Path, content: Mapping[str, Any]) -> None:
    file.write_text(json.dumps(content, indent=2) + "\n")


def main(words: Sequence[str] | None = None, began: float | None = None) -> int:
    """Return 3 where the time was over before the stages were done."""
    began = time.monotonic() if began is None else began
    parser = argparse.ArgumentParser(prog="python -m reproduction.frontier", description=__doc__.splitlines()[0])
    parser.add_argument("stages", choices=STAGES, nargs="+")
    parser.add_argument("--data", required=True)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--given", action="append", default=[], help="a trained teacher, by path or name; repeatable")
    parser.add_argument("--trained", type=int, default=TEACHERS, help="wide ResNets to train; 0: given ones alone")
    parser.add_argument("--finals", default="25k/seed-0,25k/seed-1,25k/seed-2", help="what `final` trains")
    parser.add_argument("--minutes", type=float, default=600.0, help="of this call; what runs then is saved")
    parser.add_argument("--final-minutes", type=float, default=7.0, help="of `final`, for its epochs")
    parser.add_argument("--jobs", type=int, default=1, help="trainings at a time")
    parser.add_argument("--epochs", type=int, default=0, help="of `final`, instead of --final-minutes")
    parser.add_argument("--keep", type=Path, help="pack small files and the weights that matter here")
    parser.add_argument("--keep-mib", type=float, default=46.0, help="limit of the weights there")
    parser.add_argument("--state", type=Path, help="what --keep packed on another machine: goes on from there")
    parser.add_argument("--changed", type=json.loads, default={}, help="values, to try it out small")
    options = parser.parse_args(words)
    options.out.mkdir(parents=True, exist_ok=True)
    finals = tuple(options.finals.split(","))
    data = sphynx.open_data(options.data)
    given = tuple(options.given)
    for line in unpack(options.state, options.out) if options.state else ():
        print(line)
    plan = Plan(
        data, options.out, given, options.trained, finals, options.final_minutes, options.epochs, options.changed
    )
    seconds = 60 * options.minutes - (time.monotonic() - began)
    names = plan.names(options.stages)
    keep = partial(pack_results, plan.out, options.keep) if options.keep else None
    done = run_tasks(plan.tasks, names, jobs=options.jobs, seconds=seconds, logs=options.out / "logs", keep=keep)
    summary = plan.summarise()
    write(plan.out / "summary.json", summary)
    print(json.dumps(summary, indent=2))
    if options.keep:
        print("\n".join(plan.keep(options.keep, int(options.keep_mib * 2**20))))
    return 0 if done else 3


if __name__ == "__main__":
    raise SystemExit(main(began=STARTED))
