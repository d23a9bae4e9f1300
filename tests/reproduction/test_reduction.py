"""One teacher reduced by several methods, at its smallest, and what of it goes to another machine."""

import json
import re
from pathlib import Path

import pytest
from reproduction.gpu.state import pack_results, unpack, unpacked
from reproduction.kept_reductions import ASKED, TEACHER, keep_reductions
from reproduction.reduction import STAGES, TRAINED, Plan, Point, main
from reproduction.reduction_page import make_reduction_page

import sphynx
from sphynx.network.trained import load_trained
from sphynx.reduce.results import REDUCTION, Reduced, ReduceResult
from sphynx.space.artifact import MODEL
from sphynx.space.reduced import NonlinearCounts
from sphynx.train.results import RESULT, TrainResult
from sphynx.train.views import weights_digest

SMALL = json.dumps(
    {
        "width": 2,
        "teacher": {"epochs": 1, "batch_size": 64, "warmup_epochs": 0},
        "recipe": "distil-small",
        **dict.fromkeys(("50k", "25k"), 700),
    }
)
BRIEF = json.dumps({"search_epochs": 1, "training.epochs": 1, "rounds": 1})


def test_the_best_rival_gets_more_seeds(tmp_path: Path) -> None:
    for method, accuracy in (("snl", 0.7), ("senet", 0.71), ("deepreduce", 0.66)):
        one = Reduced(method, NonlinearCounts(relus=25_000), accuracy, accuracy, 3.0)
        out = tmp_path / Point(method, "25k").name  # type: ignore[arg-type]
        out.mkdir()
        (out / REDUCTION).write_text(json.dumps(ReduceResult(25_000, 557_056, 0.78, (one,)).to_json()))
    points = Plan(sphynx.open_data("digits"), tmp_path).points("seeds")
    assert [(point.method, point.seed) for point in points] == [("auto", 1), ("auto", 2), ("senet", 1), ("senet", 2)]


def test_no_two_points_share_a_folder() -> None:
    names = [point.name for points in STAGES.values() for point in points]
    assert len(set(names)) == len(names)


def test_what_is_unfinished_is_not_packed(tmp_path: Path) -> None:
    """Its small files alone would be taken for a run that can go on."""
    for folder in ("finished", "unfinished"):
        (tmp_path / folder / "chosen").mkdir(parents=True)
        (tmp_path / folder / "chosen" / "choice.json").write_text("{}")
    pack_results(tmp_path, tmp_path / "kept", {"finished"})
    unpack(tmp_path / "kept", tmp_path / "there")
    assert [file.name for file in (tmp_path / "there").iterdir()] == ["finished"]


def test_our_own_weights_are_kept_first_then_the_most_accurate(tmp_path: Path) -> None:
    reductions = {"snl-50k-seed0": 0.74, "senet-50k-seed0": 0.75, "auto-25k-seed1": 0.73, "auto-25k-seed0": 0.72}
    for name, accuracy in reductions.items():
        (tmp_path / name).mkdir()
        one = Reduced(name.split("-")[0], NonlinearCounts(relus=25_000), accuracy, accuracy, 3.0)
        (tmp_path / name / REDUCTION).write_text(json.dumps(ReduceResult(25_000, 557_056, 0.78, (one,)).to_json()))
    worth = Plan(sphynx.open_data("digits"), tmp_path).by_worth()
    assert worth == ["auto-25k-seed0", "senet-50k-seed0", "snl-50k-seed0", "auto-25k-seed1"]


@pytest.mark.slow
def test_a_stage_goes_on_elsewhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    here, there, small = tmp_path / "here", tmp_path / "there", ["--small", SMALL, "--settings", BRIEF]
    words = ["rivals", "table", "--data", "digits", *small, "--only", "deepreduce"]
    assert main([*words, "-o", str(here), "--jobs", "2"]) == 0
    state = here / "kept"
    assert {file.name for file in state.iterdir()} == {"results.tgz", "state.00"}
    assert main(["later", "--data", "digits", *small, "-o", str(there), "--state", str(state), "--minutes", "0"]) == 3
    for folder in (TEACHER, "deepreduce-50k-seed0"):  # the latter's kernels in eight bits there
        assert load_trained(there / folder).design == load_trained(here / folder).design
    assert (there / TEACHER / MODEL).read_bytes() == (here / TEACHER / MODEL).read_bytes()
    given = tmp_path / "given"
    assert main([TEACHER, "--data", "digits", *small, "-o", str(given), "--teacher", str(here / TEACHER)]) == 0
    assert not (given / TRAINED).exists() and (given / TEACHER / MODEL).is_file()
    kept, trained = (read_result(here / folder) for folder in (TEACHER, TRAINED))
    assert kept.weights == weights_digest(load_trained(there / TEACHER).module) != trained.weights
    assert kept.accuracy == sphynx.evaluate_network(here / TEACHER, "digits").accuracy
    assert (there / TEACHER / MODEL).stat().st_size < 0.5 * (here / TRAINED / MODEL).stat().st_size
    assert kept.minutes == trained.minutes > 0
    assert not list(there.glob("later*")) and not (there / "views.safetensors").exists()
    asked = json.loads((there / "deepreduce-50k-seed0" / ASKED).read_text())
    assert (asked["method"], asked["relu_budget"], asked["jobs"]) == ("deepreduce", "50k", 2) and asked["minutes"] > 0
    written = [file.name for file in keep_packed(state, tmp_path / "results")]
    assert written == ["teacher.json", "deepreduce-50k-seed0.json"]
    page = make_reduction_page(tmp_path / "results")
    assert re.search(r"took \d\.\d minutes of the device", page)
    assert "| deepreduce | 1 | 0 | 672 | 0 | 0 |" in page and "| snl | 120 | 0 | not run |" in page
    assert not any(str(tmp_path) in file.read_text() for file in (tmp_path / "results").rglob("*.json"))
    capsys.readouterr()
    assert main([*words, "-o", str(there)]) == 0  # nothing is left to do
    assert "| deepreduce-50k-seed0 | deepreduce | 672 |" in capsys.readouterr().out


def read_result(run: Path) -> TrainResult:
    return TrainResult.from_json(json.loads((run / RESULT).read_text()))


def keep_packed(state: Path, results: Path) -> list[Path]:
    with unpacked(state) as runs:
        return keep_reductions(runs, results)
