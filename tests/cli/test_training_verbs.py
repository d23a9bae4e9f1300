"""The verbs of data and training as a user meets them: real processes, also killed and interrupted ones."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.torch import load_file

from tests.data.layouts import write_classes
from tests.train.small import DESIGN

FAST = ["--recipe", "smoke", "--epochs", "2", "--batch-size", "16", "--device", "cpu"]
# Ends itself with -9 between the bytes of its second checkpoint and the rename that makes them count.
KILLED_IN_ITS_SECOND_SAVE = """
import os, signal, sys
from sphynx.cli.main import main
from sphynx.run.folder import RunFolder
rename, saves = RunFolder._rename, []
def killed(self, temporary, name):
    saves.append(name) if name == "checkpoint.pt" else None
    if len(saves) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    rename(self, temporary, name)
RunFolder._rename = killed
main()
"""
# Sends itself Ctrl-C in the third batch.
INTERRUPTED = """
import os, signal, sys
from sphynx.cli.main import main
from sphynx.train.step import Step
run, steps = Step._run, []
def step(self, x, y):
    run(self, x, y)
    steps.append(1)
    if len(steps) == 3:
        os.kill(os.getpid(), signal.SIGINT)
Step._run = step
main()
"""


def sphynx(*arguments: str, cwd: Path, code: str = "") -> subprocess.CompletedProcess[str]:
    start = ["-c", code] if code else ["-m", "sphynx.cli.main"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "SPHYNX_DATA": str(cwd / "data-home")}
    return subprocess.run(
        [sys.executable, *start, *arguments], capture_output=True, text=True, cwd=cwd, env=environment, check=False
    )


@pytest.fixture
def work(tmp_path: Path) -> Path:
    for split, n in (("train", 16), ("val", 4)):
        write_classes(tmp_path / "images" / split, ("a", "b", "c"), n=n, size=4)
    from dataclasses import replace

    from sphynx.space.tally import Shape

    replace(DESIGN, image=Shape(3, 4, 4)).save(tmp_path / "design.json")
    return tmp_path


def test_killed_and_interrupted_runs_resume_to_the_same_network(work: Path) -> None:
    start = ["train", "design.json", "--data", "images", *FAST]
    whole = sphynx(*start, "--out", "whole", "--json", cwd=work)
    assert whole.returncode == 0, whole.stderr
    killed = sphynx(*start, "--out", "killed", cwd=work, code=KILLED_IN_ITS_SECOND_SAVE)
    assert killed.returncode == -signal.SIGKILL
    interrupted = sphynx(*start, "--out", "interrupted", cwd=work, code=INTERRUPTED)
    assert interrupted.returncode == 1
    command = "sphynx train design.json --data images " + " ".join(FAST) + " --out interrupted --resume auto"
    assert command in interrupted.stderr
    for name in ("killed", "interrupted"):
        refused = sphynx(*start, "--out", name, cwd=work)
        assert refused.returncode == 2 and "--resume auto" in refused.stderr
        resumed = sphynx(*start, "--out", name, "--resume", "auto", "--json", cwd=work)
        assert resumed.returncode == 0, resumed.stderr
        assert json.loads(resumed.stdout)["test_loss"] == json.loads(whole.stdout)["test_loss"]
        ours, theirs = (load_file(work / run / "model.safetensors") for run in (name, "whole"))
        assert all((ours[key] == theirs[key]).all() for key in theirs)
    shown = sphynx("eval", "killed", "--data", "images", "--json", cwd=work)
    assert json.loads(shown.stdout)["accuracy"] == json.loads(whole.stdout)["accuracy"]


def test_train_checks_what_it_is_given(work: Path) -> None:
    start = ["train", "design.json", "--data", "images", "--out", "run"]
    for flags, message in (
        (["--distillation", "squared"], "distillation needs both"),
        (["--teacher", "auto"], "distillation needs both"),
        (["--resume", "perhaps"], "no way to resume"),
        (["--decay-epochs", "a,b"], "is not a list"),
        (["--schedule", "zigzag", "--optimizer", "lion"], "2 faults"),
    ):
        ran = sphynx(*start, *flags, cwd=work)
        assert ran.returncode == 2 and message in ran.stderr, ran.stderr


def test_recipes(work: Path) -> None:
    listed = json.loads(sphynx("recipes", "ls", "--json", cwd=work).stdout)
    assert listed["paper-cifar100"]["epochs"] == 600
    assert sphynx("recipes", "cp", "fast", "mine.toml", cwd=work).returncode == 0
    assert "already" in sphynx("recipes", "cp", "fast", "mine.toml", cwd=work).stderr
    assert sphynx("recipes", "validate", "mine.toml", "smoke", cwd=work).stdout == "mine.toml: good\nsmoke: good\n"
    (work / "mine.toml").write_text("epochs = -1\nmixup = -2\n")
    bad = sphynx("recipes", "validate", "mine.toml", cwd=work)
    assert bad.returncode == 2 and "2 faults" in bad.stderr


def test_data(work: Path) -> None:
    listed = json.loads(sphynx("data", "ls", "--json", cwd=work).stdout)
    assert [row["here"] for row in listed] == [True, False, False, False, False]
    shown = json.loads(sphynx("data", "show", "images", "--json", cwd=work).stdout)
    assert shown["class_counts"]["b"] == {"train": 16, "test": 4} and shown["image"] == [3, 4, 4]
    assert "classes" in sphynx("data", "show", "images", cwd=work).stdout
    missing = sphynx("data", "show", "cifar100", cwd=work)
    assert missing.returncode == 2 and "sphynx data get cifar100" in missing.stderr


@pytest.mark.parametrize(
    "verb", [["train"], ["eval"], ["data", "ls"], ["data", "get"], ["data", "show"], ["recipes", "cp"]]
)
def test_every_help_has_an_example(verb: list[str], work: Path) -> None:
    assert "Example" in sphynx(*verb, "--help", cwd=work).stdout
