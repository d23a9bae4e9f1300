"""Independent work in turn, and on a Ray cluster of two nodes: the same results, also when a worker dies."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pickle
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from reproduction.experiments import EXPERIMENTS
from reproduction.reproduce import DataSets, Reproduction
from reproduction.scales import SCALES
from safetensors.torch import load_file

import sphynx
from sphynx.api import searching
from sphynx.errors import DivergedError, InputError, MissingPartError
from sphynx.run.progress import QUIET, Voice, speak_with
from sphynx.run.sweep import IN_TURN, Sweep, open_sweep
from sphynx.run.update import Update
from sphynx.train.job import Job
from sphynx.train.processes import Processes
from sphynx.train.recipe import load_recipe
from sphynx.train.results import TrainResult
from sphynx.train.runs import train_unless_finished
from tests.torch_threads import torch_threads


def test_in_turn_in_order_and_errors_as_they_are() -> None:
    with open_sweep("", QUIET) as sweep:
        assert sweep is IN_TURN
        assert sweep.map({str(n): partial(pow, n, 2) for n in (3, 1, 2)}) == [9, 1, 4]
        with pytest.raises(ZeroDivisionError):
            sweep.map({"bad": lambda: 1 // 0})


def test_a_voice_that_travels_is_the_other_processs_own() -> None:
    heard: list[Update] = []
    assert pickle.loads(pickle.dumps(Voice("verbose", heard.append))) == QUIET
    there = Voice("quiet", heard.append)
    speak_with(there)
    try:
        pickle.loads(pickle.dumps(Voice())).say("from there")
    finally:
        speak_with(QUIET)
    assert [update.note for update in heard] == ["from there"]


def test_without_ray_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    monkeypatch.delitem(__import__("sys").modules, "sphynx.run.ray_sweep", raising=False)
    with pytest.raises(MissingPartError, match="needs the package ray"), open_sweep("local", QUIET):
        pass


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """Two nodes on this machine, one core each."""
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    found = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    found.add_node(num_cpus=1)
    yield found.address
    found.shutdown()


@pytest.fixture
def sweep(cluster: str) -> Iterator[Sweep]:
    with open_sweep(cluster, QUIET) as sweep:
        yield sweep


def node_of(number: int, marks: Path) -> tuple[int, str]:
    """Waits for another piece to begin, so that one node alone cannot have all."""
    import ray

    (marks / str(number)).touch()
    latest_s = time.monotonic() + 60
    while len(list(marks.iterdir())) < 2 and time.monotonic() < latest_s:
        time.sleep(0.02)
    return number, ray.get_runtime_context().get_node_id()


def die_once(mark: Path) -> str:
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "done"


def fail(kind: type[Any]) -> None:
    raise kind("it cannot be", where="here", remedy="Do something else.")


def test_both_nodes_work_and_results_keep_their_order(sweep: Sweep, tmp_path: Path) -> None:
    found = sweep.map({str(number): partial(node_of, number, tmp_path) for number in range(4)})
    assert [number for number, _ in found] == [0, 1, 2, 3]
    assert len({node for _, node in found}) == 2


def test_a_piece_whose_worker_was_killed_is_called_again(sweep: Sweep, tmp_path: Path) -> None:
    assert sweep.map({"a": partial(die_once, tmp_path / "mark"), "b": partial(str, 7)}) == ["done", "7"]


def test_errors_come_back_as_what_they_were(sweep: Sweep) -> None:
    for kind in (InputError, DivergedError):
        with pytest.raises(kind, match="here: it cannot be") as raised:
            sweep.map({"bad": partial(fail, kind)})
        assert raised.value.remedy == "Do something else."


def test_a_ray_that_is_not_there(cluster: str) -> None:  # noqa: ARG001 - ray is installed
    with pytest.raises(InputError, match="no Ray cluster can be reached"), open_sweep("127.0.0.1:1", QUIET):
        pass


def train_dying_once(job: Job, mark: Path) -> TrainResult:
    """Its process is killed after the first epoch, the first time."""

    def die(update: Update) -> None:
        if update.total and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)

    return train_unless_finished(dataclasses.replace(job, voice=Voice("quiet", die), resume=True))


def test_seeds_are_those_of_one_process_though_a_worker_is_killed(cluster: str, tmp_path: Path) -> None:
    design, digits = sphynx.plan(1024, image=(1, 8, 8), classes=10).design, sphynx.open_data("digits")
    mark = tmp_path / "killed"
    heard: list[Update] = []
    with torch_threads(1):
        settings = {"epochs": 3}
        expected = sphynx.train_network(
            design, digits, out=tmp_path / "here", recipe="smoke", settings=settings, seeds=2, device="cpu"
        )
        there = tmp_path / "there"
        one = Job(design, digits, load_recipe("smoke", settings), there, voice=QUIET)
        jobs = [dataclasses.replace(one, seed=seed, out=there / f"seed-{seed}") for seed in (0, 1)]
        with open_sweep(cluster, Voice("quiet", heard.append)) as sweep:
            found = sweep.map({f"seed {job.seed}": partial(train_dying_once, job, mark) for job in jobs})
            api = sphynx.train_network(
                design,
                digits,
                out=there,
                recipe="smoke",
                settings=settings,
                seeds=3,
                device="cpu",
                resume=True,
                ray=cluster,
                progress=heard.append,
            )
    assert mark.exists()  # one was killed
    assert [run.accuracy for run in found] == [run.accuracy for run in expected.runs]
    for seed in (0, 1):
        here, away = (load_file(tmp_path / where / f"seed-{seed}" / "model.safetensors") for where in ("here", "there"))
        assert here.keys() == away.keys() and all(torch.equal(here[name], away[name]) for name in here)
    assert api.accuracies[:2] == expected.accuracies and len(api.runs) == 3
    assert any(update.stage == "train" and update.total for update in heard)  # the third seed's epochs, heard here


def test_rows_of_a_reproduction_are_those_of_one_process(cluster: str, tmp_path: Path) -> None:
    """A teacher, and two networks that learn from it."""
    scale, rows = SCALES["smoke"], EXPERIMENTS["distillation"].rows[:3]
    experiment = SimpleNamespace(name="distillation", rows=rows)
    found = []
    with torch_threads(1):
        for where in ("", cluster):
            with open_sweep(where, QUIET) as sweep:
                reproduction = Reproduction(
                    scale,
                    DataSets({}, scale),
                    tmp_path / ("there" if where else "here"),
                    voice=QUIET,
                    sweep=sweep,
                    processes=Processes(torch.device("cpu")),
                )
                found.append([outcome.ours for outcome in reproduction.run(experiment)])  # type: ignore[arg-type]
    assert all(found[0]) and [one and one.accuracy for one in found[0]] == [one and one.accuracy for one in found[1]]


def test_seeds_and_cells_of_a_search_can_travel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every piece is pickled as Ray does it, and run from the copy."""
    ray = pytest.importorskip("ray")
    names: list[list[str]] = []

    class Travelling:
        may_repeat = True

        def map(self, work: dict[str, Any]) -> list[Any]:
            names.append(list(work))
            return [piece() for piece in ray.cloudpickle.loads(ray.cloudpickle.dumps(list(work.values())))]

    monkeypatch.setattr(searching, "open_sweep", lambda *_: contextlib.nullcontext(Travelling()))
    sphynx.search_cells(
        "digits",
        out=tmp_path,
        strategy="darts",
        recipe="smoke",
        seeds=2,
        rank_recipe="smoke",
        random_cells=1,
        device="cpu",
    )
    assert names[0] == ["seed 0", "seed 1"] and len(names) == 2 and len(names[1]) >= 2
