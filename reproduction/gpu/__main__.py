"""The paper's experiments on one GPU, spread over as many windows of time as there are.

    nvidia-cuda-mps-control -d        # once: several runs beside each other share the GPU
    PYTHONPATH=src python -m reproduction.gpu --data cifar100 --state runs/paper --out kept --seconds 1500
    PYTHONPATH=src python -m reproduction.gpu --list

Runs what `runs` lists, `--slots` runs at a time, and ends within `--seconds`: RESERVE_SECONDS before the end all
runs get SIGINT, which saves. The same command continues. On another machine: put the files of `--out` (results.tgz,
state.NN) into `--state` first; teachers come there in eight bits. What is finished is kept with
`python -m reproduction keep STATE/runs`; then `make docs` writes the page.

torch and the images are loaded once, before CUDA is touched; each run is a forked process, which begins within seconds.
A run that would not be finished in time is not started, unless it may be carried over. Estimated seconds are multiplied
by a ratio that finished runs correct.

What slots are worth under MPS on an H200, three at a time: placement searches (batch 128) take 4.1 to 5.4 minutes each
where one alone takes 3.2 to 4, so 2.3 times the work is done; trainings at batch 512 take 2.3 times their estimate, so
1.3 times, and beside a compiled run of 600 epochs 2.8 to 4 times it. Each run by itself takes longer: with one slot the
first of the list is finished soonest.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import signal
import sys
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch

from reproduction import STARTED
from reproduction.gpu.planned import Planned
from reproduction.gpu.runs import planned_runs
from reproduction.gpu.state import pack_results, pack_state, unpack
from reproduction.tasks import TOLD_SECONDS, end_with
from sphynx.api.searching import place_reduce_cells, search_cells
from sphynx.api.training import train_network
from sphynx.data.images import Data
from sphynx.data.open import open_data
from sphynx.errors import InterruptedWorkError
from sphynx.run.progress import NORMAL
from sphynx.search.choices import StrategyName
from sphynx.space.design import Design
from sphynx.space.files import AnyDesign
from sphynx.space.micro import MicroDesign

RESERVE_SECONDS = 40.0  # for the end: saving and packing
GRACE_SECONDS = 22.0  # from SIGINT until a run is killed
STARTUP_SECONDS = 12.0  # of a run: CUDA, choosing kernels, capturing
LEAST_SECONDS = 25.0  # with fewer left nothing is started
LEAST_CARRIED_SECONDS = 60.0
SECONDS_PER_SLOT = 0.9  # that an estimated second takes, for each run at a time
MOST_CARRIED = 2  # at a time: what is carried over has to be stored
PACK_EVERY_SECONDS = 60.0
INTERRUPTED = 130
NAMED = 20  # of what is left


def say(text: str) -> None:
    print(f"[{time.monotonic() - STARTED:6.1f}] {text}", flush=True)


@dataclass(frozen=True)
class Window:
    data: dict[str, Data]  # by name
    runs: Path
    out: Path
    device: str
    slots: int
    limit_bytes: int
    smoke: bool  # one channel, one epoch: does everything run?
    end: float

    def design(self, run: Planned) -> AnyDesign:
        assert run.design is not None
        design = run.design(self.runs)
        if self.smoke and isinstance(design, Design | MicroDesign):
            return dataclasses.replace(design, channels=1)
        return design

    def settings(self, run: Planned, variant: int) -> dict[str, Any]:
        found = {**run.settings, **run.variants[variant]}
        if self.smoke:
            found |= {"epochs": 1, "batch_size": 25}
            found |= {"search": {"channels": 1, "depth": 3}, "train": {"warmup_epochs": 0}}.get(run.kind, {})
        return found

    def folder(self, run: Planned) -> Path:
        """The folder of the variant that ran last."""
        tried = [self.runs / name for name in (_variant(run, number) for number in range(len(run.variants)))]
        return next((folder for folder in reversed(tried) if folder.is_dir()), tried[0])

    def epochs(self, run: Planned) -> int:
        file = self.folder(run) / "metrics.jsonl"
        return len(file.read_text().splitlines()) if file.is_file() else 0

    def finished(self, run: Planned) -> bool:
        result = self.folder(run) / ("beta.json" if run.kind == "place" else "result.json")
        return result.is_file() or 0 < run.stop_after <= self.epochs(run)


def _variant(run: Planned, number: int) -> str:
    return run.place if number == 0 else f"{run.place}.v{number}"


def work(run: Planned, window: Window, variant: int, out: Path) -> None:
    settings, data = window.settings(run, variant), window.data[run.data]
    given: dict[str, Any] = {"out": out, "recipe": run.recipe, "settings": settings, "seed": run.seed, "resume": True}
    given |= {"device": window.device, "progress": NORMAL}
    if run.kind == "search":
        search_cells(data, strategy=cast(StrategyName, run.strategy), **given)
    elif run.kind == "place":
        design: Any = window.design(run)
        place_reduce_cells(design, data, **given)
    else:
        teacher = str(window.runs / run.teacher) if run.teacher else None
        train_network(window.design(run), data, teacher=teacher, **given)


def fork(run: Planned, window: Window, variant: int) -> int:
    """Fork a process for the run and return its id; the process itself never returns."""
    out = window.runs / _variant(run, variant)
    out.mkdir(parents=True, exist_ok=True)
    parent = os.getpid()
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        end_with(parent)
        log = os.open(out / "run.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(log, 1)
        os.dup2(log, 2)
        work(run, window, variant, out)
        code = 0
    except (InterruptedWorkError, KeyboardInterrupt):
        code = INTERRUPTED
    except BaseException:  # a run that fails ends here: nothing of it may reach the queue's own stack
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


@dataclass
class Running:
    run: Planned
    process: int
    started: float
    variant: int
    asked_to_stop: bool = False


class Queue:
    def __init__(self, listed: list[Planned], window: Window) -> None:
        self.listed, self.window = listed, window
        self.planned = {run.name: run for run in planned_runs()}  # with `--only`, what a run needs may not be listed
        self.running: list[Running] = []
        self.failed: dict[str, int] = {}  # run -> variants that failed
        self.ratio = max(1.1, SECONDS_PER_SLOT * window.slots)  # seconds per estimated second
        self.stopping = False

    def next(self, left: float) -> Planned | None:
        busy = {one.run.place for one in self.running}
        finished = {run.name for run in self.listed if self.window.finished(run)}
        carried = sum(one.run.carried for one in self.running)
        for run in self.listed:
            if run.name in finished or run.place in busy or self.obstacle(run):
                continue
            if self.window.smoke or STARTUP_SECONDS + self.ratio * run.seconds < left:
                return run
            if run.carried and left > LEAST_CARRIED_SECONDS and carried < MOST_CARRIED:
                return run
        return None

    def obstacle(self, run: Planned) -> str:
        """Name what is in the way of the run, however much time there is."""
        if self.failed.get(run.name, 0) >= len(run.variants):
            return "failed"
        if run.data not in self.window.data:
            return f"needs {run.data}"
        if run.needs and not self.window.finished(self.planned[run.needs]):
            return f"needs {run.needs}"
        if run.teacher and not (self.window.runs / run.teacher / "model.safetensors").is_file():
            return f"needs the weights of {run.teacher}"
        return ""

    def loop(self) -> None:
        packed = time.monotonic()
        while True:
            now = time.monotonic()
            self.reap()
            if self.stopping or now >= self.window.end:
                return
            self.fill(now)
            if not self.running:
                say("nothing is left that fits")
                return
            for one in self.running:
                if not one.asked_to_stop and 0 < one.run.stop_after <= self.window.epochs(one.run):
                    os.kill(one.process, signal.SIGINT)
                    one.asked_to_stop = True
            if now - packed > PACK_EVERY_SECONDS:
                pack_results(self.window.runs, self.window.out)  # whatever ends this machine leaves so much
                packed = now
            time.sleep(0.3)

    def fill(self, now: float) -> None:
        left = self.window.end - now
        while len(self.running) < self.window.slots and left > LEAST_SECONDS and (run := self.next(left)):
            variant = self.failed.get(run.name, 0)
            self.running.append(Running(run, fork(run, self.window, variant), now, variant))
            say(f"start {run.name}, variant {variant}, about {run.seconds:.0f} s alone")

    def reap(self) -> None:
        for one in list(self.running):
            process, status = os.waitpid(one.process, os.WNOHANG)
            if not process:
                continue
            self.running.remove(one)
            code, seconds = os.waitstatus_to_exitcode(status), time.monotonic() - one.started
            say(f"end {one.run.name}: exit code {code} after {seconds:.1f} s")
            if code == 0 and not one.run.carried and not self.window.smoke:
                seen = max(0.3, (seconds - STARTUP_SECONDS) / one.run.seconds)
                self.ratio += 0.5 * (seen - self.ratio)
            if code not in (0, INTERRUPTED):
                self.failed[one.run.name] = one.variant + 1
                log = self.window.folder(one.run) / "run.log"
                print("    " + "\n    ".join(log.read_text().splitlines()[-12:]), flush=True)

    def stop(self) -> None:
        until = time.monotonic() + TOLD_SECONDS
        while self.stopping and self.running and time.monotonic() < until:
            self.reap()
            time.sleep(0.1)
        for one in self.running:
            os.kill(one.process, signal.SIGINT)
        until = time.monotonic() + GRACE_SECONDS
        while self.running and time.monotonic() < until:
            self.reap()
            time.sleep(0.1)
        for one in self.running:
            say(f"killed {one.run.name}, which did not stop")
            os.kill(one.process, signal.SIGKILL)
        while self.running:
            self.reap()
            time.sleep(0.1)

    def pack(self) -> None:
        """The paper's own recipe first, then teachers, then searches and the rest."""
        window = self.window
        pack_results(window.runs, window.out)
        unfinished = [run for run in self.listed if not window.finished(run)]
        teachers = {(run.teacher, "compact"): 1 for run in self.listed if run.teacher}  # in full they are too large
        kinds = {
            (window.folder(run).name, str(run.kind)): 0 if run.recipe.startswith("paper-") else 3 - run.carried
            for run in unfinished
        }
        by_priority = {**kinds, **teachers}
        for line in pack_state(
            window.runs, window.out, sorted(by_priority, key=by_priority.__getitem__), window.limit_bytes
        ):
            say(line)
        finished = [run.name for run in self.listed if window.finished(run)]
        left = [run for run in self.listed if run.name not in finished]
        state = {
            "finished": finished,
            "left": [run.name for run in left],
            "failed": self.failed,
            "epochs": {run.place: window.epochs(run) for run in self.listed if window.epochs(run)},
            "seconds_per_estimated_second": round(self.ratio, 3),
        }
        (window.out / "queue.json").write_text(json.dumps(state, indent=1) + "\n")
        for run in left[:NAMED]:
            say(f"left: {run.name}, {self.obstacle(run) or f'about {self.ratio * run.seconds / 60:.0f} min'}")
        minutes = self.ratio * sum(run.seconds for run in left) / window.slots / 60
        say(f"finished {len(finished)} of {len(self.listed)} runs; failed: {', '.join(self.failed) or 'none'}")
        say(f"the {len(left)} that are left would take about {minutes:.0f} min, {window.slots} at a time")


def open_named(name: str, place: str, *, smoke: bool) -> Data:
    data = dataclasses.replace(open_data(place), name=name, source=None)
    few = torch.arange(100)
    return dataclasses.replace(data, train=data.train.subset(few), test=data.test.subset(few)) if smoke else data


def main() -> None:
    parser = argparse.ArgumentParser(description="The paper's experiments, for a number of seconds of one GPU.")
    parser.add_argument("--data", help="CIFAR-100, as `sphynx train --data` takes it")
    parser.add_argument("--tiny-imagenet", help="Tiny-ImageNet, for the runs that train on it")
    parser.add_argument("--state", type=Path, help="work in progress")
    parser.add_argument("--out", type=Path, help="results and state, for another machine")
    parser.add_argument("--seconds", type=float, default=1500.0)
    parser.add_argument("--slots", type=int, default=3, help="runs at a time")
    parser.add_argument("--state-mib", type=float, default=46.0, help="limit of the checkpoints in --out")
    parser.add_argument("--only", default="", help="names of runs, separated by commas")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--smoke", action="store_true", help="one channel, one epoch, 100 images: does everything run?")
    parser.add_argument("--list", action="store_true", help="print the runs with estimated seconds, and run nothing")
    given = parser.parse_args()
    chosen = [name for name in given.only.split(",") if name]
    planned = planned_runs()
    if unknown := sorted(set(chosen) - {run.name for run in planned}):
        parser.error(f"--only: no run is called {', '.join(unknown)}; --list names them")
    listed = [run for run in planned if not chosen or run.name in chosen]
    if given.list:
        total = 0.0
        for run in listed:
            total += run.seconds
            print(f"{run.name:44} {run.kind:7} {run.seconds:6.0f} {total:7.0f}")
        return
    if not (given.data and given.state and given.out):
        parser.error("give --data, --state and --out")
    torch.set_num_threads(1)
    runs: Path = given.state / "runs"
    for folder in (runs, given.out):
        folder.mkdir(parents=True, exist_ok=True)
    for line in unpack(given.state, runs):
        say(line)
    found = {"cifar100": given.data, "tiny-imagenet": given.tiny_imagenet}
    data = {name: open_named(name, place, smoke=given.smoke) for name, place in found.items() if place}
    limit, end = int(given.state_mib * 2**20), STARTED + given.seconds - RESERVE_SECONDS
    queue = Queue(listed, Window(data, runs, given.out, given.device, given.slots, limit, given.smoke, end))

    def ask_to_stop(_number: int, _frame: object) -> None:
        queue.stopping = True

    signal.signal(signal.SIGINT, ask_to_stop)
    signal.signal(signal.SIGTERM, ask_to_stop)
    queue.loop()
    queue.stop()
    queue.pack()


if __name__ == "__main__":
    main()
