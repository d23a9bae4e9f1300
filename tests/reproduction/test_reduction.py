"""One teacher reduced by several methods, at its smallest, and what of it goes to another machine."""

import json
from pathlib import Path

import pytest
from reproduction.gpu.state import pack_results, unpack
from reproduction.reduction import STAGES, TEACHER, Plan, Point, main

import sphynx
from sphynx.reduce.results import REDUCTION, Reduced, ReduceResult
from sphynx.space.reduced import NonlinearCounts

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


@pytest.mark.slow
def test_a_stage_goes_on_elsewhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    here, there, small = tmp_path / "here", tmp_path / "there", ["--small", SMALL, "--settings", BRIEF]
    words = ["rivals", "table", "--data", "digits", *small, "--only", "deepreduce"]
    assert main([*words, "-o", str(here), "--jobs", "2"]) == 0
    state = here / "kept"
    assert {file.name for file in state.iterdir()} == {"results.tgz", "state.00"}
    assert main(["later", "--data", "digits", *small, "-o", str(there), "--state", str(state), "--minutes", "0"]) == 3
    assert (there / TEACHER / "model.safetensors").read_bytes() == (here / TEACHER / "model.safetensors").read_bytes()
    assert not list(there.glob("later*")) and not (there / "views.safetensors").exists()
    capsys.readouterr()
    assert main([*words, "-o", str(there)]) == 0  # nothing is left to do
    assert "| deepreduce-50k-seed0 | deepreduce | 672 |" in capsys.readouterr().out
