"""The verbs of data and training; killed and interrupted runs are real processes, the rest runs in this one."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from safetensors.torch import load_file
from tools.pack_model import pack

from sphynx.cli.main import main
from sphynx.config import read_settings
from sphynx.program.folder import load_program
from sphynx.space.tally import Shape
from sphynx.train.recipe import Recipe, load_recipe, with_epochs
from tests.data.layouts import write_classes
from tests.torch_threads import torch_threads
from tests.train.small import DESIGN
from tests.warm_process import Warm

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


class Ran(NamedTuple):
    code: int
    out: str
    err: str


class Sphynx:
    """Runs the command line in this process, in a folder of its own."""

    def __init__(
        self, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, warm: Warm
    ) -> None:
        self.folder, self.capsys, self.monkeypatch, self.warm = folder, capsys, monkeypatch, warm

    def __call__(self, *arguments: str) -> Ran:
        self.monkeypatch.setattr(sys, "argv", ["sphynx", *arguments])
        code: int | str | None = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code
        shown = self.capsys.readouterr()
        return Ran(int(code or 0), shown.out, shown.err)

    def apart(self, code: str, *arguments: str) -> Ran:
        """The same in a process of its own, which runs `code`."""
        command, environment = [str(self.warm.programs / "python"), "-c", code, *arguments], self.warm.environment
        ran = subprocess.run(command, capture_output=True, text=True, cwd=self.folder, env=environment, check=False)
        return Ran(ran.returncode, ran.stdout, ran.stderr)


@pytest.fixture
def sphynx(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, warm: Warm
) -> Iterator[Sphynx]:
    for split, n in (("train", 16), ("val", 4)):
        write_classes(tmp_path / "images" / split, ("a", "b", "c"), n=n, size=4)
    replace(DESIGN, image=Shape(3, 4, 4), conv_stack="single").save(tmp_path / "design.json")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPHYNX_DATA", str(tmp_path / "data-home"))
    with torch_threads(1):
        yield Sphynx(tmp_path, capsys, monkeypatch, warm)


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [(KILLED_IN_ITS_SECOND_SAVE, 128 + signal.SIGKILL), (INTERRUPTED, 1)],
    ids=["killed", "ctrl-c"],
)
def test_a_stopped_run_resumes_to_the_same_network(code: str, exit_code: int, sphynx: Sphynx) -> None:
    start = ["train", "design.json", "--data", "images", *FAST]
    whole = sphynx(*start, "--out", "whole", "--json")
    assert whole.code == 0, whole.err
    stopped = sphynx.apart(code, *start, "--out", "stopped")
    assert stopped.code == exit_code, stopped.err
    if exit_code == 1:
        assert f"sphynx {' '.join(start)} --out stopped --resume" in stopped.err
    refused = sphynx(*start, "--out", "stopped")
    assert refused.code == 2 and "--resume" in refused.err
    resumed = sphynx(*start, "--out", "stopped", "--resume", "--json")
    assert resumed.code == 0, resumed.err
    assert json.loads(resumed.out)["test_loss"] == json.loads(whole.out)["test_loss"]
    ours, theirs = (load_file(sphynx.folder / run / "model.safetensors") for run in ("stopped", "whole"))
    assert all((ours[key] == theirs[key]).all() for key in theirs)
    shown = json.loads(sphynx("eval", "stopped", "--data", "images", "--device", "cpu", "--json").out)
    assert shown["accuracy"] == json.loads(whole.out)["accuracy"]


def test_train_prints_a_table_with_the_spread(sphynx: Sphynx) -> None:
    ran = sphynx("train", "design.json", "--data", "images", *FAST, "--seeds", "2", "--out", "run")
    assert ran.code == 0, ran.err
    assert "n = 2" in ran.out and "std" in ran.out and "epoch" in ran.err
    shown = sphynx("eval", "run/seed-1", "--data", "images", "--device", "cpu").out
    assert "accuracy" in shown and "top 5" not in shown  # of three classes


def test_a_recipe_that_suits_the_data_is_taken_unless_one_is_named(sphynx: Sphynx) -> None:
    words = ("train", "design.json", "--data", "images", "--device", "cpu")
    ran = sphynx(*words, "--out", "few")
    assert ran.code == 0 and "recipe small, epochs: 132, as suits 48 training images" in ran.err, ran.err
    used = json.loads(Path("few/config.json").read_text())["recipe"]
    assert read_settings(Recipe, used, where="config") == with_epochs(load_recipe("small"), 132)
    assert sphynx(*words, "--resume", "--out", "few", "--recipe", "auto").code == 0
    named = sphynx(*words, "--recipe", "fast", "--epochs", "6", "--out", "named")
    assert "recipe fast, epochs: 6\n" in named.err
    assert json.loads(Path("named/config.json").read_text())["recipe"]["learning_rate"] == 0.2


def test_a_stream_learns_from_kept_views_with_and_without_its_teacher(sphynx: Sphynx) -> None:
    size = ("--image-size", "4", "--image-channels", "3", "--classes", "3")
    sphynx("show", "stream", "--stages", "2:6:3 1:8:4", *size, "-o", "stream.json")
    sphynx("show", "wide-resnet", "-D", "10", "-C", "1", *size, "-o", "teacher.json")
    short = ("--data", "images", "--epochs", "2", "--batch-size", "16", "--set", "warmup_epochs=1", "--device", "cpu")
    taught = sphynx("train", "teacher.json", *short, "--recipe", "teacher", "--out", "teacher")
    assert taught.code == 0, taught.err
    student = (
        "train",
        "stream.json",
        *short,
        "--recipe",
        "frontier",
        "--set",
        "view_epochs=1",
        "--views",
        "v.safetensors",
    )
    refused = sphynx(*student, "--out", "first")
    assert refused.code == 2 and "distillation needs both" in refused.err
    first = sphynx(*student, "--teacher", "teacher", "--out", "first", "--json")
    assert first.code == 0 and Path("v.safetensors").is_file(), first.err
    second = sphynx(*student, "--out", "second", "--json")
    assert second.code == 0 and json.loads(second.out)["test_loss"] == json.loads(first.out)["test_loss"], second.err
    Path("commands").write_text("sphynx train stream.json --out second\n")
    packed = pack(Path("second"), "small-stream", Path("packed"), teachers=[Path("teacher")], commands=Path("commands"))
    assert (packed / "design.json").is_file()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--views somewhere", "the recipe does not use a file of views"),
        ("--set view_epochs=3", "distillation is none"),
        ("--set distillation=squared", "distillation needs both"),
        ("--teacher auto", "distillation needs both"),
        ("--set decay_epochs=a,b", "expected a list"),
        ("--set schedule=zigzag --set optimizer=lion", "2 errors"),
        ("--device toaster", "not a valid device"),
    ],
)
def test_train_checks_what_it_is_given(flags: str, message: str, sphynx: Sphynx) -> None:
    ran = sphynx("train", "design.json", "--data", "images", "--out", "run", *flags.split())
    assert ran.code == 2 and message in ran.err


def test_a_missing_package_is_named(sphynx: Sphynx) -> None:
    sphynx.monkeypatch.setitem(sys.modules, "torch", None)
    ran = sphynx("data", "show", "images")
    assert ran.code == 1 and "needs the package torch" in ran.err and "pip install" in ran.err


def test_values_that_are_typed_often_have_flags(sphynx: Sphynx) -> None:
    shown = sphynx("train", "--help").out
    for name in ("epochs", "batch_size", "learning_rate"):
        assert f"--{name.replace('_', '-')}" in shown and name in Recipe.__dataclass_fields__


def test_recipes(sphynx: Sphynx) -> None:
    assert json.loads(sphynx("recipes", "--json").out)["paper-cifar100"]["epochs"] == 600
    assert "paper-tiny" in sphynx("recipes").out
    shown = sphynx("recipes", "show", "fast").out
    assert all(f"\n{name} = " in f"\n{shown}" for name in Recipe.__dataclass_fields__)
    Path("mine.toml").write_text(shown)
    assert load_recipe("mine.toml") == load_recipe("fast")
    Path("mine.toml").write_text("epochs = -1\nmixup = -2\n")
    bad = sphynx("recipes", "show", "mine.toml")
    assert bad.code == 2 and "2 errors" in bad.err


def test_recipes_of_searches_stand_beside_those_of_training(sphynx: Sphynx) -> None:
    listed = json.loads(sphynx("recipes", "--json").out)
    assert {name: row["stage"] for name, row in listed.items() if name.endswith("smoke")} == {
        "smoke": "training",
        "search-smoke": "search",
        "placement-smoke": "placement",
    }
    assert "supernet C=5 D=8" in sphynx("recipes").out
    Path("mine.toml").write_text(sphynx("recipes", "show", "search-small").out)
    assert sphynx("recipes", "show", "mine.toml", "--stage", "search").code == 0
    assert sphynx("recipes", "show", "placement-fast").code == 0
    as_training = sphynx("recipes", "show", "mine.toml")
    assert as_training.code == 2 and "unknown key 'random_candidates'" in as_training.err
    assert (
        "'lunch' is not one of 'training', 'search', 'placement'"
        in sphynx("recipes", "show", "mine.toml", "--stage", "lunch").err
    )


def test_eval_tells_the_worst_classes(sphynx: Sphynx) -> None:
    assert sphynx("train", "design.json", "--data", "images", *FAST, "--out", "run").code == 0
    words = ("eval", "run", "--device", "cpu", "--per-class")
    shown = json.loads(sphynx(*words, "--json").out)
    assert sorted((one["name"], one["images"]) for one in shown["classes"]) == [("a", 4), ("b", 4), ("c", 4)]
    right = sum(one["accuracy"] * one["images"] for one in shown["classes"])
    assert right == pytest.approx(shown["accuracy"] * shown["images"])
    assert "most often confused with" in sphynx(*words).out
    assert "classes" not in json.loads(sphynx(*words[:-1], "--json").out)


@pytest.mark.parametrize("stream", [(), ("--stream",)], ids=["in memory", "streamed"])
def test_later_commands_find_the_data_again(stream: tuple[str, ...], sphynx: Sphynx) -> None:
    """Also from another folder, at the size that they were resized to."""
    write_classes(Path("photos/train"), ("a", "b", "c"), n=16, size=6)
    write_classes(Path("photos/val"), ("a", "b", "c"), n=4, size=6)
    flags = ("--data", "photos", "--image-size", "4", *stream)
    assert sphynx("train", "design.json", *flags, *FAST, "--epochs", "1", "--out", "run").code == 0
    Path("elsewhere").mkdir()
    sphynx.monkeypatch.chdir("elsewhere")
    evaluated = sphynx("eval", "../run", "--device", "cpu", "--json")
    assert evaluated.code == 0 and json.loads(evaluated.out)["images"] == 12, evaluated.err
    assert sphynx("compile", "../run", "-o", "compiled", "--weight-bits", "8").code == 0
    assert load_program(Path("compiled")).input.picture_part == (7 / 8 if stream else 1)  # what clients are to show
    checked = sphynx("check", "compiled", "--images", "5", "--json")
    assert checked.code == 0 and json.loads(checked.out)["images"] == 5, checked.err
    if stream:
        assert "--images 1000" in sphynx("check", "compiled").err
    Path("../photos").rename("../moved")
    lost = sphynx("check", "compiled")
    assert lost.code == 2 and "made with cannot be opened" in lost.err and "--data DATA" in lost.err
    Path("compiled/data.json").unlink()
    assert "does not name the data" in sphynx("check", "compiled").err


@pytest.mark.parametrize("stream", [(), ("--stream",)], ids=["in memory", "streamed"])
def test_size_and_streaming_stay_where_other_data_are_named(stream: tuple[str, ...], sphynx: Sphynx) -> None:
    for split, n in (("train", 16), ("val", 4)):
        write_classes(Path("photos", split), ("a", "b", "c"), n=n, size=6)
    flags = ("--data", "photos", "--image-size", "4", *stream)
    assert sphynx("train", "design.json", *flags, *FAST, "--epochs", "1", "--out", "run").code == 0
    Path("photos").rename("moved")
    moved = ("--data", "moved", "--json")
    evaluated = sphynx("eval", "run", "--device", "cpu", *moved)
    assert evaluated.code == 0 and json.loads(evaluated.out)["images"] == 12, evaluated.err
    assert sphynx("compile", "run", "-o", "compiled", "--calibrate", "moved", "--weight-bits", "8").code == 0
    everything = sphynx("check", "compiled", *moved)
    assert everything.code == (2 if stream else 0) and ("--images 1000" in everything.err) == bool(stream)
    assert sphynx("check", "compiled", *moved, "--no-stream").code == 0
    assert "3x5x5" in sphynx("eval", "run", "--device", "cpu", *moved, "--image-size", "5").err
    other = sphynx("check", "compiled", "--data", "digits").err
    if stream:
        assert "--no-stream" in other
    else:
        assert "images are 8x8, the network takes those of 4x4" in other and "Leave" not in other
        assert "Leave --image-size out" in sphynx("check", "compiled", "--data", "digits", "--image-size", "4").err
    assert "no such file" in sphynx("check", "compiled", "--data", "nowhere", "--no-stream").err


def test_images_cannot_be_resized_to_nothing(sphynx: Sphynx) -> None:
    refused = sphynx("data", "show", "images", "--image-size", "0")
    assert refused.code == 2 and "--image-size" in refused.err and "Traceback" not in refused.err


def test_data(sphynx: Sphynx) -> None:
    listed = json.loads(sphynx("data", "ls", "--json").out)
    assert [row["here"] for row in listed] == [True, False, False, False, False]
    assert "digits" in sphynx("data", "ls").out
    shown = json.loads(sphynx("data", "show", "images", "--json").out)
    assert shown["class_counts"]["b"] == {"train": 16, "test": 4} and shown["image"] == [3, 4, 4]
    assert "3x4x4 images, 3 classes" in sphynx("data", "show", "images").out
    streamed = json.loads(sphynx("data", "show", "images", "--stream", "--image-size", "4", "--json").out)
    assert streamed["class_counts"] == shown["class_counts"] and streamed["image"] == [3, 4, 4]
    assert "streamed images need an image size" in sphynx("data", "show", "images", "--stream").err
    missing = sphynx("data", "show", "cifar100")
    assert missing.code == 2 and "sphynx data get cifar100" in missing.err
    assert sphynx("data", "get", "no-such-name").code == 2


@pytest.mark.parametrize("verb", ["train", "eval", "data ls", "data get", "data show", "recipes", "recipes show"])
def test_every_help_has_an_example(verb: str, sphynx: Sphynx) -> None:
    assert "Example" in sphynx(*verb.split(), "--help").out
