"""Frequent mistakes name the command that helps; the command named is the one that works."""

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sphynx.cli.main import main
from sphynx.data.open import open_data
from sphynx.network.build import build_network
from sphynx.network.trained import save_model, save_normalisation
from sphynx.space.design import Design
from sphynx.space.published_cells import SPHYNX
from sphynx.space.tally import Shape
from tests.data.layouts import write_classes

Tried = Callable[[str], tuple[int, str]]


@pytest.fixture
def tried(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Tried:
    """design.json, a trained run runs/mine, and a command that is tried among them: exit code, what it says."""
    monkeypatch.chdir(tmp_path)
    design = Design(SPHYNX, 1, 2, (1,), Shape(1, 8, 8), 10, conv_stack="single")
    design.save(Path("design.json"))
    for run in (Path("runs/mine"), Path("runs/three/seed-1")):
        run.mkdir(parents=True)
        save_model(run, build_network(design))
        save_normalisation(run, open_data("digits"))
    Path("runs/designed").mkdir()
    save_model(Path("runs/designed"), build_network(design))
    Path("runs/designed/stages.json").write_text("{}")
    for name in ("net.pt", "net.py", "net.pt2"):
        Path(name).touch()
    Path("runs/begun").mkdir()
    design.save(Path("runs/begun/design.json"))
    Path("runs/begun/config.json").write_text("{}")

    def run_it(command: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["sphynx", *shlex.split(command)])
        try:
            main()
            code: object = 0
        except SystemExit as ended:
            code = ended.code
        said = capsys.readouterr()
        return int(str(code or 0)), said.out + said.err

    return run_it


@pytest.mark.parametrize(
    ("command", "what", "remedy"),
    [
        ("serve runs/mine --keys k", "not compiled yet", "sphynx compile runs/mine -o compiled/mine"),
        ("estimate runs/mine/model.safetensors", "not compiled yet", "sphynx compile runs/mine/model.safetensors -o"),
        ("check runs/three", "several seeds", "sphynx compile runs/three/seed-1 -o compiled/three"),
        ("app --local design.json", "a design without weights", "sphynx train design.json --data DATA -o runs/design"),
        ("serve runs/begun --keys k", "not finished", "--resume"),
        ("train runs/designed --data digits -o x", "it is a run", "design OPTIONS -o runs/designed --resume"),
        ("compile design.json -o c", "a design without weights", "sphynx train design.json --data DATA -o runs/design"),
        ("compile runs/mine/design.json -o c", "design of a trained run", "Give the folder: runs/mine"),
        ("compile runs/three -o c", "several seeds", "runs/three/seed-1"),
        ("eval runs/begun", "not finished", "--resume"),
        ("compile net.pt -o c", "net.pt: it is not the weights of a trained run", '(example,)), "net.pt2")'),
        ("compile net.py -o c", "net.py: it is not the weights", "sphynx compile also reads .onnx and .pt2 files"),
        ("compile runs -o c", "runs: the folder holds no trained network", "a run folder, its model.safetensors or"),
        ("eval net.pt2", "a network from elsewhere", "sphynx compile net.pt2 --calibrate DATA -o compiled/net"),
        ("serve net.pt2 --keys k", "not compiled yet", "sphynx compile net.pt2 -o compiled/net --calibrate DATA"),
        ("train runs/mine --data digits -o x", "a run, not a design", "sphynx train runs/mine/design.json --data DATA"),
        ("train runs/begun --data digits -o x", "a run, not a design", "-o runs/begun --resume"),
        ("search placement runs/mine --data digits -o x", "a run, not a design", "runs/mine/design.json"),
        ("train runs/mine/model.safetensors --data digits -o x", "a run, not a design", "runs/mine/design.json"),
    ],
)
def test_another_stages_artifact_names_the_command(command: str, what: str, remedy: str, tried: Tried) -> None:
    code, said = tried(command)
    assert code == 2 and what in said and remedy in said.partition("remedy:")[2]


def test_the_command_that_is_named_works(tried: Tried) -> None:
    _, said = tried("serve runs/mine --keys k")
    named = said.partition("sphynx compile")[2].split("\n")[0]
    assert tried(f"compile {named} --calibrate digits --weight-bits 8")[0] == 0
    code, said = tried("compile compiled/mine -o c")
    assert code == 2 and "already compiled" in said and "sphynx serve compiled/mine" in said


def test_bad_files_are_listed_and_left_out(tried: Tried) -> None:
    write_classes(Path("photos"))
    write_classes(Path("photos"), ("cow",), n=1)
    assert "leaves out classes without test images: cow" in tried("data show photos")[1]
    for name in ("ant/1.png", "bee/2.png"):
        Path("photos", name).write_bytes(b"")
    Path("photos/ant/x.heic").write_text("x")
    code, said = tried("data show photos")
    assert code == 2 and "photos/ant/1.png" in said and "photos/bee/2.png" in said and "--skip-bad" in said
    code, said = tried("data show photos --skip-bad")
    assert code == 0 and "left out 2 images" in said and "photos/bee/2.png" in said and "1 .heic" in said
    code, said = tried("data show photos --skip-bad --json")
    assert tried("data sample photos -o x.png")[0] == 2
    code, said = tried("data sample photos -o x.png --skip-bad")
    assert code == 0 and "left out 2 images" in said and Path("x.png").is_file()
    said = tried("data show photos --skip-bad --json")[1]
    left_out = json.loads(said)["left_out"]
    assert code == 0 and set(left_out["bad_files"]) == {"photos/ant/1.png", "photos/bee/2.png"}
    assert left_out["other_formats"] == {".heic": 1}
