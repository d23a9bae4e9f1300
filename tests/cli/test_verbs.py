"""The command line as a user meets it: a process of its own, its exit code, its two streams."""

import inspect
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from PIL import Image

from sphynx.cli.verbs import verbs
from sphynx.space.artifact import CONFIGURATION
from sphynx.space.design import Design
from sphynx.space.published_cells import SPHYNX
from sphynx.zoo.shipped import model_names
from tests.warm_process import Warm

Sphynx = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def sphynx(warm: Warm) -> Sphynx:
    return warm.sphynx


def test_help_and_version(sphynx: Sphynx) -> None:
    shown = sphynx("--help")
    assert shown.returncode == 0
    for verb in ("plan", "show", "doctor"):
        assert verb in shown.stdout
        assert "Example" in sphynx(verb, "--help").stdout
    assert sphynx("--version").stdout.startswith("sphynx ")


@pytest.mark.parametrize("group", ["", "bench", "data", "keys", "models", "recipes"])
def test_a_list_of_verbs_has_whole_sentences(sphynx: Sphynx, group: str) -> None:
    shown = sphynx(*group.split(), "--help").stdout
    assert "Commands:" in shown and "..." not in shown.split("Commands:")[1]


def test_examples_in_help_can_be_copied_and_name_flags_and_models_that_there_are() -> None:
    known = {name: {*verb_flags(verb, context)} for name, verb, context in verbs()}
    for _, verb, context in verbs():
        formatter = context.make_formatter()
        verb.format_help_text(context, formatter)
        shown = formatter.getvalue()
        assert max(map(len, shown.splitlines())) <= 80
        typed = [line.strip() for line in re.sub(r" \\\n +", " ", shown).splitlines() if line.startswith("    ")]
        paragraphs = inspect.cleandoc(verb.help).split("\n\n")
        assert typed == [" ".join(one.split()) for one in paragraphs if one.startswith(" ")]
        for words in (shlex.split(one) for line in typed for one in line.split(";") if "-m sphynx" not in line):
            name = max((name for name in known if name.split() == words[: len(name.split())]), key=len)
            assert {word for word in words if word.startswith("-")} <= known[name], words
            assert not name.startswith("sphynx models") or {*words[3:4]} <= {*model_names()}, words


def verb_flags(verb: Any, context: typer.Context) -> Iterator[str]:
    return (flag for one in verb.get_params(context) for flag in (*one.opts, *one.secondary_opts))


def test_the_package_runs_as_a_module() -> None:
    ran = subprocess.run([sys.executable, "-m", "sphynx", "--version"], capture_output=True, text=True, check=False)
    assert ran.stdout.startswith("sphynx ") and ran.returncode == 0


def test_classes_that_a_terminal_cannot_show_are_escaped(tmp_path: Path, warm: Warm) -> None:
    """Names in another encoding than the terminal's, and bytes that do not decode."""
    for name in ("été".encode(), b"\xff"):
        folder = os.fsencode(tmp_path) + b"/photos/" + name
        Path(os.fsdecode(folder)).mkdir(parents=True)
        for number in range(5):
            Image.new("RGB", (4, 4)).save(os.fsdecode(folder + f"/{number}.png".encode()))
    for encoding, shown in (("ascii", r"\xe9t\xe9, \udcff"), ("utf-8", r"été, \udcff")):
        ran = subprocess.run(
            [str(warm.programs / "sphynx"), "data", "show", str(tmp_path / "photos")],
            env={**warm.environment, "PYTHONIOENCODING": encoding},
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        assert shown in ran.stdout


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys\nfrom sphynx.cli import main\n"
        "print([m for m in ('torch', 'numpy', 'matplotlib', 'rich.table', 'sphynx.space.account') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "verb",
    [
        ["plan", "--relu-budget", "50k"],
        ["show", "sphynx"],
        ["recipes"],
        ["report", "run", "--live", "--every", "0"],
        ["doctor"],
    ],
)
def test_the_base_install_needs_no_torch(verb: list[str], tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / CONFIGURATION).write_text('{"stage": "train", "recipe": {"epochs": 3}}')
    code = (
        "import sys\nsys.modules['torch'] = None\n"
        f"sys.argv = ['sphynx', *{verb!r}]\nfrom sphynx.cli.main import main\nmain()"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("group", ["models", "data"])
def test_a_group_by_itself_lists_what_it_has(sphynx: Sphynx, group: str) -> None:
    listed = sphynx(group)
    assert listed.returncode == 0, listed.stderr
    assert listed.stdout == sphynx(group, "ls").stdout != ""


def test_python_and_the_verb_make_one_network(sphynx: Sphynx) -> None:
    """Settings that neither names have one default."""
    shown = sphynx("show", "sphynx", "--channels", "5", "--depth", "5", "--reduce-at", "0,1", "--json")
    made = json.loads(shown.stdout)["design"]
    assert {**made, "name": ""} == Design(SPHYNX, channels=5, depth=5, reduce_positions=(0, 1)).to_json()


def test_plan_to_show(sphynx: Sphynx, tmp_path: Path) -> None:
    planned = sphynx("plan", "--relu-budget", "50k", "--json", "-o", "design.json", cwd=tmp_path)
    assert planned.returncode == 0, planned.stderr
    plans = json.loads(planned.stdout)
    assert {(p["channels"], p["depth"]) for p in plans["plans"]} >= {(5, 10), (6, 8), (7, 7), (8, 6), (10, 5)}
    assert [p["relus"] for p in plans["plans"] if p["chosen"]] == [51_200]
    shown = sphynx("show", "design.json", "--svg", "pictures", "--json", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert json.loads(shown.stdout)["relus"] == 51_200
    assert (tmp_path / "pictures/normal.svg").read_text().startswith("<svg")
    assert "M3 = " in (tmp_path / "pictures/skeleton.svg").read_text()
    assert "51,200" in sphynx("show", "design.json", cwd=tmp_path).stdout
    assert "->" in sphynx("plan", "--relu-budget", "50k", cwd=tmp_path).stdout


def test_plan_to_show_of_a_stream(sphynx: Sphynx, tmp_path: Path) -> None:
    planned = sphynx(
        "plan", "--family", "stream", "--relu-budget", "25.6k", "--json", "-o", "design.json", cwd=tmp_path
    )
    assert planned.returncode == 0, planned.stderr
    (chosen,) = (plan for plan in json.loads(planned.stdout)["plans"] if plan["chosen"])
    shown = sphynx("show", "design.json", "--svg", "pictures", "--json", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    data = json.loads(shown.stdout)
    assert (data["relus"], data["parameters"]) == (chosen["relus"], chosen["parameters"])
    assert "C = 72" in (tmp_path / "pictures/skeleton.svg").read_text()
    again = sphynx("show", "stream", "--stages", chosen["stages"], "--json", cwd=tmp_path)
    assert json.loads(again.stdout)["design"] == data["design"]
    assert chosen["stages"] in sphynx("show", "design.json", cwd=tmp_path).stdout


def test_a_long_list_of_plans_is_shown_by_the_nearest_of_each_depth(sphynx: Sphynx, tmp_path: Path) -> None:
    planned = sphynx("plan", "--relu-budget", "4M", cwd=tmp_path)
    assert planned.returncode == 0, planned.stderr
    rows = [line.split("│") for line in planned.stdout.splitlines() if line.startswith("│")]
    depths = sorted(int(row[3]) for row in rows)
    assert depths == list(range(3, 41)) and sum("->" in row[1] for row in rows) == 1
    assert "1,083" in planned.stdout and len(rows) == 38


def test_show_takes_names_and_flags(sphynx: Sphynx) -> None:
    shown = sphynx("show", "pc-darts", "-C", "4", "-D", "6", "--reduce-at", "0,1", "--conv-stack", "pad_once", "--json")
    assert shown.returncode == 0, shown.stderr
    data = json.loads(shown.stdout)
    assert data["relus"] == 32 * 32 * 4 * 6
    assert data["design"]["genotype"]["name"] == "pc-darts-in-sphynx"


def test_reference_networks_get_pools_that_compile_unless_asked(sphynx: Sphynx, tmp_path: Path) -> None:
    for flags, pool, comparisons in (((), "average", False), (("--pool", "max"), "max", True)):
        shown = sphynx("show", "vgg11", "-C", "2", "--classes", "10", *flags, "--json", cwd=tmp_path)
        assert shown.returncode == 0, shown.stderr
        data = json.loads(shown.stdout)
        assert data["design"]["pool"] == pool and bool(data["comparisons"]) == comparisons
    assert "'median' is not one of 'max', 'average'" in sphynx("show", "resnet18", "--pool", "median").stderr


def test_designs_and_pictures_go_into_new_folders(sphynx: Sphynx, tmp_path: Path) -> None:
    odd = ("--image-size", "33", "--tolerance", "0.05")
    planned = sphynx("plan", "--relu-budget", "5k", *odd, "-o", "new/plan/design.json", cwd=tmp_path)
    assert planned.returncode == 0 and "within 5 % of 5,000" in planned.stdout, planned.stderr
    assert sphynx("show", "new/plan", "-o", "other/design.json", "--svg", "new/svg", cwd=tmp_path).returncode == 0
    assert (tmp_path / "other/design.json").read_text() == (tmp_path / "new/plan/design.json").read_text()


def test_doctor(sphynx: Sphynx) -> None:
    found = json.loads(sphynx("doctor", "--json").stdout)
    assert found["core"]["built"] is True
    assert found["core"]["aes_path"]
    assert found["packages"]["torch"]
    assert "aes_path" in sphynx("doctor").stdout


def bad_genotype(**change: object) -> str:
    return json.dumps({**SPHYNX.to_json(), **change})


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["plan", "--relu-budget", "10"], "no channels and depth"),
        (["plan", "--relu-budget", "lots"], "not a valid ReLU budget"),
        (["plan", "--relu-budget", "50k", "--stem", "odd"], "'odd' is not one of 'auto', 'small', 'imagenet'"),
        (["plan", "--relu-budget", "50k", "--balancing", "odd"], "'odd' is not one of 'relu', 'flop'"),
        (["plan"], "--relu-budget"),
        (["plan", "--relu-budget", "99999999999999999999k"], "more than 1,000,000 networks"),
        (["plan", "--relu-budget", "25k", "--width", "64"], "--width: no effect with --family cells"),
        (["plan", "--relu-budget", "25k", "--family", "stream", "--cells", "darts-v2"], "--cells: no effect with"),
        (["plan", "--relu-budget", "25k", "--link", "wan"], "--link: no effect without --latency-budget"),
        (["design", "--data", "absent", "--relu-budget", "1k", "--search-recipe", "fast"], "only with a strategy"),
        (["show", "sphynx", "--reduce-at", "0,9"], "reduce position 9 is outside"),
        (["show", "sphynx", "--reduce-at", "1,1"], "reduce position 1 is given twice"),
        (["show", "sphynx", "--reduce-at", "a"], "--reduce-at: 'a' are not valid positions"),
        (["design", "--data", "absent", "--relu-budget", "-6k"], "'-6k' is not a valid ReLU budget"),
        (["design", "--data", "absent", "--relu-budget", "1k", "--reduce-at", "1,b"], "'1,b' are not valid positions"),
        (["design", "--data", "absent", "--relu-budget", "1k", "--set", "x"], "--set: 'x' is not a valid setting"),
        (["show", "resnet18", "-C", "0"], "width, classes and image sizes"),
        (["show", "resnet18", "--stem", "odd"], "'odd' is not one of 'auto', 'small', 'imagenet'"),
        (["show", "resnet18", "-D", "5", "--reduce-at", "0,9"], "--depth, --reduce-at: resnet18 has no such property"),
        (["show", "vgg11", "--stem", "small"], "--stem: vgg11 has no such property"),
        (["show", "vgg11", "--balancing", "flop", "--conv-stack", "single"], "Leave --balancing and --conv-stack out"),
        (["show", "sphynx", "--pool", "max"], "--pool: a network of cells has no such property"),
        (["show", "resnet18", "--svg", "pictures"], "only networks of Sphynx cells and streams can be drawn"),
        (["show", "wide-resnet", "-C", "0"], "width, classes and image sizes"),
        (["show", "wide-resnet", "-D", "27"], "6n + 4 layers, not 27"),
        (["show", "stream"], "the maps (none) do not fit"),
        (["show", "stream", "--stages", "16:8:2", "--pool", "max"], "--pool: stream has no such property"),
        (["show", "stream", "--stages", "16:8:2", "--borders", "odd"], "'odd' is not one of 'zero', 'halo'"),
        (["show", "sphynx", "--stages", "16:8:2"], "--stages: a network of cells has no such property"),
        (["plan", "--relu-budget", "25k", "--family", "odd"], "'odd' is not one of 'cells', 'stream'"),
        (["plan", "--latency-budget", "90ms", "--family", "stream"], "stream networks are planned by ReLUs"),
        (["show", "sphynx", "--svg", "cycle.json"], "cycle.json: it is not a folder"),
        (["show", "sphynx", "--svg", "cycle.json/within"], "cycle.json/within: it is not a folder"),
        (["show", "sphynx", "-o", "cycle.json/design.json"], "design.json: it cannot be written"),
        (["plan", "--relu-budget", "50k", "-o", "."], "it cannot be written"),
        (["report", "results", "-o", "."], "it cannot be written"),
        (["show", "."], "the folder contains no design.json"),
        (["show", "nothing-like-this"], "no file, folder or network has this name"),
        (["show", "resnet-18"], "resnet18, vgg11"),
        (["show", "sphynx-cifar100-26k"], "sphynx-cifar100-25k"),
        (["show", "absent.json"], "no such file"),
        (["show", "unknown.json"], "unknown operation 'fly'"),
        (["show", "cycle.json"], "cycle"),
        (["show", "missing.json"], "1 incoming edges"),
        (["fly"], "fly"),
    ],
)
def test_bad_input_is_one_clear_error_and_exit_code_2(
    sphynx: Sphynx, tmp_path: Path, arguments: list[str], fault: str
) -> None:
    (tmp_path / "unknown.json").write_text(bad_genotype(normal={"2": [["fly", 0], ["skip", 1]]}))
    (tmp_path / "cycle.json").write_text(bad_genotype(normal={"2": [["skip", 2], ["skip", 1]]}))
    (tmp_path / "missing.json").write_text(bad_genotype(normal={"2": [["skip", 0]]}))
    ran = sphynx(*arguments, cwd=tmp_path)
    assert ran.returncode == 2
    assert fault in ran.stderr
    assert "Traceback" not in ran.stderr
    assert ran.stdout == ""
