"""`sphynx design` as a user calls it, on the embedded digits; a real Ctrl-C in a real process."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sphynx.cli.main import app
from sphynx.errors import InputError
from tests.data.layouts import write_classes
from tests.design.conftest import brief_timing as brief_timing  # a fixture
from tests.torch_threads import torch_threads
from tests.warm_process import Warm

# 320 ReLUs: C = 1, D = 5 on images of 8x8. One epoch of everything, in few large batches.
TINY = [
    "design",
    "--data",
    "digits",
    "--relu-budget",
    "320",
    "--device",
    "cpu",
    "--recipe",
    "smoke",
    *("--set", "training.epochs=1", "--set", "training.batch_size=240"),
]
PLACE = ["--placement-recipe", "smoke", "--set", "placement.epochs=1", "--set", "placement.batch_size=240"]
SEARCH = [
    *("--strategy", "gdas", "--search-recipe", "smoke"),
    *("--set", "cells.epochs=1", "--set", "cells.batch_size=240", "--set", "cells.nodes=4", "--set", "cells.depth=2"),
]
INTERRUPTED_IN_TRAINING = """
import os, signal
from sphynx.cli.main import main
from sphynx.design import forecast
from sphynx.train.step import Step
run, steps = Step._run, []
def step(self, x, y):
    run(self, x, y)
    steps.append(1)
    if len(steps) == 2:
        os.kill(os.getpid(), signal.SIGINT)
Step._run = step
forecast.training_epoch_seconds = lambda job: 1.0
main()
"""


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with torch_threads(1):
        yield


def run(*words: str) -> str:
    result = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def of_images(folder: Path, relu_budget: int) -> list[str]:
    words = f"design --relu-budget {relu_budget} --device cpu --compare none --data"
    return [*words.split(), str(folder / "images")]


def test_a_design_with_search_prints_plan_estimate_comparison_and_times(tmp_path: Path) -> None:
    out = tmp_path / "run"
    shown = run(*TINY, *PLACE, *SEARCH, "--random-cells", "1", "-o", str(out))
    for words in (
        "C=1, D=5",
        "Estimate",
        "Cells, ranked by short trainings",
        "searched cells (gdas)",
        "random cells",
        "published cells",
        "Designed:",
        "no spread is known",
    ):
        assert words in " ".join(shown.split()), words
    for name in ("genotype.json", "design.json", "model.safetensors", "result.json", "stages.json"):
        assert (out / name).is_file(), name
    with pytest.raises(InputError, match="already contains a run"):
        run(*TINY, *PLACE, *SEARCH, "--random-cells", "1", "-o", str(out))
    again = json.loads(run(*TINY, *PLACE, *SEARCH, "--random-cells", "1", "-o", str(out), "--resume", "--json"))
    assert again["accuracies"] == json.loads((out / "result.json").read_text())["accuracies"]
    evaluated = json.loads(run("eval", str(out), "--data", "digits", "--device", "cpu", "--json"))
    assert evaluated["accuracy"] == again["accuracies"][0]


@pytest.mark.slow  # tests/search/placement has its parts
def test_three_reduce_cells_are_placed(tmp_path: Path) -> None:
    designed = json.loads(
        run(*TINY, *PLACE, "--reduce-cells", "3", "--compare", "none", "-o", str(tmp_path / "run"), "--json")
    )
    assert len(designed["reduce_positions"]) == 3 and designed["relus"] == 320


def test_places_given_by_hand_stay_within_the_budget(tmp_path: Path) -> None:
    """9, 5, 3 pixels: 81, 100, 144 ReLUs per channel. 325 with reduce cells at D/3 and 2D/3, as the plan counts."""
    write_classes(tmp_path / "images", n=10, size=9)
    more = "--recipe smoke --set training.epochs=1 --json -o"
    words = [*of_images(tmp_path, 325), *more.split(), str(tmp_path / "run")]
    with pytest.raises(InputError, match=r"at 0,1 .* has 388 ReLUs, the budget is 325") as refused:
        run(*words, "--reduce-at", "0,1")
    assert "Reduce later" in refused.value.remedy and not (tmp_path / "run").exists()
    designed = json.loads(run(*words, "--reduce-at", "1,2"))
    assert designed["relus"] == 325 and designed["reduce_positions"] == [1, 2]


@pytest.mark.slow
def test_few_images_are_trained_for_more_epochs_unless_their_number_is_given(tmp_path: Path) -> None:
    write_classes(tmp_path / "images", n=5, size=4)
    words = [*of_images(tmp_path, 48), "--reduce-at", "1,2", "--json"]
    usual = json.loads(run(*words, "-o", str(tmp_path / "usual")))
    assert usual["training"]["epochs"] == 132 and usual["training"]["warmup_epochs"] == 22
    given = json.loads(run(*words, "--set", "training.epochs=2", "-o", str(tmp_path / "given")))
    assert given["training"]["epochs"] == 2


def test_ctrl_c_saves_and_says_how_to_resume(tmp_path: Path, warm: Warm) -> None:
    words = [*TINY, "--reduce-at", "fixed", "--compare", "none", "-o", str(tmp_path / "run")]
    command = [str(warm.programs / "python"), "-c", INTERRUPTED_IN_TRAINING, *words]
    stopped = subprocess.run(command, env=warm.environment, capture_output=True, text=True, check=False)
    assert stopped.returncode == 1, stopped.stderr
    assert stopped.stderr.startswith("timing a few steps of each stage")
    assert "Continue with: sphynx design" in stopped.stderr and "--resume" in stopped.stderr
    assert (tmp_path / "run" / "training" / "seed-0" / "checkpoint.pt").exists()
    finished = json.loads(run(*words, "--resume", "--json"))
    assert finished["placed_by"] == "fixed" and finished["comparison"]["rows"] == []


def test_bad_arguments_are_refused_before_any_work(tmp_path: Path) -> None:
    common = ["design", "--data", "digits", "--relu-budget", "320", "-o", str(tmp_path / "run")]
    for words, message in (
        (["--strategy", "gaea", "--cells", "darts-v2"], "exclude each other"),
        (["--search-recipe", "smoke"], "cells are searched only with a strategy"),
        (["--reduce-at", "0,9"], "outside 0"),
        (["--reduce-at", "0,1,2,3"], "has 704 ReLUs, the budget is 320"),  # one pixel stays one
        (["--reduce-at", "0,1", "--reduce-cells", "3"], "only applies to a search that places them"),
        (["--reduce-cells", "9"], "9 reduce cells cannot be placed"),
        (["--random-cells", "2"], "random cells are ranked only together with searched cells"),
        (
            ["--strategy", "gaea", "--set", "cells.reduce_at=[0]"],
            "the supernet takes its reduce positions from the network",
        ),
        (["--set", "cells.epochs=3"], "no cells are searched, so cells.epochs has no effect"),
        (
            ["--reduce-at", "fixed", "--set", "placement.epochs=3"],
            "no reduce cells are placed, so placement.epochs has no effect",
        ),
        (["--set", "epochs=3"], "does not name a stage"),
        (["--set", "training.speed=3"], "unknown key"),
        (["--recipe", "slow"], "no training recipe"),
        (["--time-budget", "soon"], "not a valid time"),
        (["--relu-budget", "100"], "no channels and depth"),
        (["--relu-budget", "much"], "not a valid ReLU budget"),
    ):
        with pytest.raises(InputError, match=message):
            run(*common, *words)
    for words in (["--strategy", "magic"], ["--candidates", "some"], ["-v", "-q"]):
        refused = CliRunner().invoke(app, [*common, *words])
        assert refused.exit_code != 0 and (words[0] in refused.output or isinstance(refused.exception, InputError))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        (["--set", "cells.epochs=1"], "Give --strategy, or leave cells.epochs out."),
        (
            ["--strategy", "gaea", "--set", "cells.depth=1"],
            "Use fewer reduce cells, or a deeper supernet: --set cells.depth=3.",
        ),
        (
            ["--strategy", "gaea", "--set", "cells.warmup=2"],
            "Write warmup = 0.25 (as the recipe has it) or a similar value.",
        ),
        (
            ["--set", "training.warmup_epochs=9"],
            "Write warmup_epochs = 1 (as the recipe has it) or a similar value, or change epochs or schedule as well.",
        ),
        (
            ["--reduce-at", "3,1"],
            "Write positions from 0 to 4 in ascending order, such as 0,1: the network has 5 cells.",
        ),
    ],
)
def test_a_remedy_names_what_was_given(words: list[str], remedy: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        run("design", "--data", "digits", "--relu-budget", "320", "-o", str(tmp_path / "run"), *words)
    assert refused.value.remedy == remedy


def test_too_few_images_to_choose_cells_by_keep_the_published_ones(tmp_path: Path) -> None:
    write_classes(tmp_path / "images", n=5, size=4)
    more = "--reduce-at 1,2 --strategy gaea --recipe smoke --search-recipe smoke"
    words = [*of_images(tmp_path, 48), *more.split()]
    shown = run(*words, "-o", str(tmp_path / "kept"))
    assert "training images are too few for a choice" in shown and "cells │" not in shown
    kept = json.loads(run(*words, "-o", str(tmp_path / "kept"), "--resume", "--json"))
    assert kept["cells"] == "published cells" and kept["ranking"] == [] and "too few" in kept["notes"][0]
    asked = json.loads(run(*words, "--random-cells", "1", "-o", str(tmp_path / "asked"), "--json"))
    assert len(asked["ranking"]) == 3 and asked["notes"] == []
    taken = json.loads(run(*words, "--random-cells", "0", "-o", str(tmp_path / "taken"), "--json"))
    assert taken["cells"] == "searched cells (gaea)"
    with pytest.raises(InputError, match="exclude each other"):
        run(*words, "--cells", "darts-v2", "-o", str(tmp_path / "both"))


def test_a_time_budget_that_is_too_small_is_refused_with_what_would_do(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="smallest schedule") as refused:
        run(*TINY, "--reduce-at", "fixed", "--time-budget", "0.01s", "-o", str(tmp_path / "run"))
    assert refused.value.exit_code == 2 and "--compare none" in refused.value.remedy
    run(*TINY, "--reduce-at", "fixed", "--time-budget", "10m", "--compare", "none", "-o", str(tmp_path / "run"))
