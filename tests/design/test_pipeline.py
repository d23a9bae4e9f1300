"""The design pipeline: its stages end to end, resumed after an interrupt in each."""

import dataclasses
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from sphynx.design import forecast, retraining
from sphynx.design import pipeline as module
from sphynx.design.results import DesignResult
from sphynx.design.retraining import retrainer
from sphynx.errors import DivergedError, InputError, InterruptedWorkError
from sphynx.network.trained import load_model
from sphynx.report.sources import read_sources
from sphynx.search.ranking import Round
from sphynx.space.design import Design
from sphynx.space.genotype import Genotype
from sphynx.space.published_cells import SPHYNX
from sphynx.train import runs
from sphynx.train.job import Job
from sphynx.train.results import TrainResult
from sphynx.train.runs import train_unless_finished
from tests.design.requests import TRAINING, pipeline
from tests.torch_threads import torch_threads

STAGES = ("cells", "placement", "training", "comparison")


def test_all_stages_leave_a_network_and_a_comparison(tmp_path: Path) -> None:
    result = pipeline(tmp_path, seeds=2).run()
    assert [row.cells for row in result.comparison.rows] == ["searched cells (gdas)", "random cells", "published cells"]
    assert all(len(row.accuracies) == 2 for row in result.comparison.rows)
    assert [gain.against for gain in result.comparison.gains] == ["random cells", "published cells"]
    assert list(result.minutes) == ["estimate", *STAGES]
    design = Design.load(tmp_path / "design.json")
    assert design.genotype == Genotype.load(tmp_path / "genotype.json") and result.relus == 48
    assert load_model(tmp_path).design == design
    first = json.loads((tmp_path / "training" / "seed-0" / "result.json").read_text())
    assert first["accuracy"] == result.accuracies[0]
    kept = json.loads((tmp_path / "result.json").read_text())
    assert DesignResult.from_json(kept) == result and kept == json.loads(json.dumps(result.to_json()))
    assert [gain["against"] for gain in kept["comparison"]["gains"]] == ["random cells", "published cells"]
    random = [Design.load(tmp_path / "comparison" / "random" / f"seed-{seed}" / "design.json") for seed in (0, 1)]
    assert random[0].genotype != random[1].genotype and random[0].reduce_positions == design.reduce_positions


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was never interrupted."""
    out = tmp_path_factory.mktemp("whole")
    with torch_threads(1):
        pipeline(out, rivals=1).run()
    return out


@pytest.mark.parametrize(
    ("stage", "where", "function", "nth"),
    [
        ("estimate", forecast, "training_epoch_seconds", 1),
        ("cells", module, "search_cells", 1),
        ("ranking", retraining, "train_unless_finished", 2),  # after that of the found cells
        ("placement", module, "place", 1),
        ("training", runs, "train_unless_finished", 1),
        ("comparison", runs, "train_unless_finished", 2),  # after the network's own training
    ],
)
def test_a_run_interrupted_in_any_stage_continues_to_the_same_result(
    tmp_path: Path, whole: Path, stage: str, where: ModuleType, function: str, nth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = getattr(where, function), []

    def interrupted(*words: Any, **named: Any) -> Any:
        calls.append(words)
        if len(calls) == nth:
            raise KeyboardInterrupt
        return real(*words, **named)

    with monkeypatch.context() as patch:
        patch.setattr(where, function, interrupted)
        with pytest.raises(InterruptedWorkError) as stopped:
            pipeline(tmp_path, rivals=1).run()
    assert stopped.value.remedy == "Call it again with `resume=True`."
    trained = {file: file.stat().st_mtime_ns for file in tmp_path.glob("ranking/*/*/result.json")}
    assert len(trained) == {"estimate": 0, "cells": 0, "ranking": 1}.get(stage, 3)
    log = json.loads((tmp_path / "stages.json").read_text())["stages"]
    assert list(log)[-1] == stage and not log[stage]["finished"]
    assert all(log[name]["finished"] for name in list(log)[:-1])

    pipeline(tmp_path, rivals=1, resume=True).run()
    assert all(file.stat().st_mtime_ns == before for file, before in trained.items())  # none was trained again
    results = [json.loads((out / "result.json").read_text()) for out in (whole, tmp_path)]
    assert _without_times(results[0]) == _without_times(results[1])
    one, other = (load_model(out).state_dict() for out in (whole, tmp_path))
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_cells_that_diverge_have_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = train_unless_finished, list[Any]()

    def diverges_first(job: Job) -> TrainResult:
        calls.append(job)
        if len(calls) == 1:
            raise DivergedError("the loss is not finite", remedy="Lower the rate.")
        return real(job)

    monkeypatch.setattr(retraining, "train_unless_finished", diverges_first)
    result = pipeline(tmp_path, rivals=1, comparison=None).run()
    last = result.ranking[-1]
    assert (last.cells, last.held_out) == ("searched cells (gdas)", 0.0)
    assert result.cells != "searched cells (gdas)"


def test_what_is_compared_with_was_not_ranked(tmp_path: Path) -> None:
    pipeline(tmp_path, rivals=2, seeds=2).run()
    ranked = {Design.load(file).genotype for file in tmp_path.glob("ranking/*/*/design.json")}
    compared = {Design.load(file).genotype for file in tmp_path.glob("comparison/random/*/design.json")}
    assert len(ranked) == 4 and len(compared) == 2 and not ranked & compared


def test_found_cells_must_beat_the_published_and_random_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The trainings are real; which of them wins is not left to three images."""
    seen: list[Genotype] = []

    def second_is_best(*words: Any, **named: Any) -> Any:
        real = retrainer(*words, **named)

        def retrain(design: Design, epochs: int) -> float:
            seen.append(design.genotype)
            return real(design, epochs) + 10 * (len(seen) == 2)

        return retrain

    monkeypatch.setattr(module, "retrainer", second_is_best)
    monkeypatch.setattr(retraining, "LEAST_RANKING_STEPS", 4)
    asked = pipeline(tmp_path, rivals=2, training=dataclasses.replace(TRAINING, epochs=16))
    result = asked.run()
    assert [estimate.stage for estimate in asked.schedule()] == ["cells", "ranking", *STAGES[1:]]
    assert len(seen) == 4 and seen[1] == SPHYNX and len(set(seen)) == 4
    held_out = [entry.held_out for entry in result.ranking]
    assert held_out == sorted(held_out, reverse=True) and len(held_out) == 4
    assert result.ranking[0].cells == result.cells == "published cells"
    assert Design.load(tmp_path / "design.json").genotype == SPHYNX
    assert [row.cells for row in result.comparison.rows] == ["published cells", "random cells"]
    runs = [json.loads(file.read_text()) for file in tmp_path.glob("ranking/*/*/config.json")]
    assert {run["recipe"]["epochs"] for run in runs} == {2}
    assert all(run["scored_on"] == "held-out" for run in runs)
    trained = json.loads((tmp_path / "training" / "seed-0" / "config.json").read_text())
    assert trained["scored_on"] == "test"
    assert {run.name.split("/")[1] for run in read_sources([tmp_path]).training} == {"training", "comparison"}


def test_many_rivals_are_ranked_in_rounds_that_continue_where_they_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight cells by real trainings: six for two epochs, two of them, the found and the published ones for four."""
    asked: dict[str, Any] = {"rivals": 6, "comparison": None, "placement": "fixed"}
    asked["training"] = dataclasses.replace(TRAINING, epochs=32)
    monkeypatch.setattr(forecast, "training_epoch_seconds", lambda _job: 1.0)
    monkeypatch.setattr(retraining, "LEAST_RANKING_STEPS", 4)  # two epochs
    real, calls = train_unless_finished, list[Job]()

    def counted(job: Job) -> TrainResult:
        calls.append(job)
        if len(calls) == 8:  # the second of the second round
            raise KeyboardInterrupt
        return real(job)

    monkeypatch.setattr(retraining, "train_unless_finished", counted)
    started = pipeline(tmp_path, **asked)
    ranking = next(estimate for estimate in started.schedule() if estimate.stage == "ranking")
    assert ranking.rounds == (Round(6, 2), Round(4, 4))
    assert ranking.seconds == pytest.approx(0.8 * (6 * 2 + 4 * 4) + 10 * ranking.end_seconds)
    with pytest.raises(InterruptedWorkError):
        started.run()
    finished = {file: file.stat().st_mtime_ns for file in tmp_path.glob("ranking/*/*/result.json")}
    assert sorted(file.parts[-3] for file in finished) == ["2-epochs"] * 6 + ["4-epochs"]

    result = pipeline(tmp_path, resume=True, **asked).run()
    assert all(file.stat().st_mtime_ns == before for file, before in finished.items())
    assert len(list(tmp_path.glob("ranking/*/*/result.json"))) == 10
    ranked = result.ranking
    lengths = {entry.cells: [one.epochs for one in entry.trainings] for entry in ranked}
    assert lengths.pop("searched cells (gdas)") == lengths.pop("published cells") == [4]
    assert list(lengths.values()) == [[2, 4]] * 2 + [[2]] * 4
    assert all(entry.held_out == entry.trainings[-1].held_out for entry in ranked)
    assert result.cells == ranked[0].cells
    rivals = [entry.trainings[0].held_out for entry in ranked if entry.cells in lengths]
    assert min(rivals[:2]) >= max(rivals[2:])


def _without_times(result: dict[str, Any]) -> dict[str, Any]:
    rows = [{**row, "minutes": 0} for row in result["comparison"]["rows"]]
    return {**result, "minutes": 0, "comparison": {**result["comparison"], "rows": rows}}


def test_published_cells_need_no_search_and_given_places_no_placement(tmp_path: Path) -> None:
    result = pipeline(tmp_path, strategy="", placement=(0, 2)).run()
    assert result.reduce_positions == (0, 2) and result.placed_by == "given"
    assert [row.cells for row in result.comparison.rows] == ["published cells", "random cells"]
    assert "cells" not in result.minutes and "placement" not in result.minutes
    weights = [*tmp_path.rglob("model.safetensors"), *tmp_path.rglob("checkpoint.pt")]
    assert len(weights) > 3 and not any(path.stat().st_mode & 0o077 for path in weights)


def test_a_comparison_by_another_recipe_trains_the_network_by_it_too(tmp_path: Path) -> None:
    longer = dataclasses.replace(TRAINING, epochs=2)
    result = pipeline(tmp_path, strategy="", placement="fixed", training=longer).run()
    assert result.training.epochs == 2
    assert result.comparison.recipe is not None and result.comparison.recipe.epochs == 1
    own = json.loads((tmp_path / "comparison" / "own" / "seed-0" / "result.json").read_text())
    assert result.comparison.rows[0].accuracies == (own["accuracy"],)
    alone = pipeline(tmp_path / "alone", strategy="", placement="fixed", comparison=None).run()
    assert alone.comparison.rows == ()


def test_a_pipeline_refuses_a_time_budget_that_is_too_small(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="smallest schedule") as refused:
        pipeline(tmp_path, time_budget=1e-3).run()
    assert "leave out `strategy`" in refused.value.remedy


@pytest.mark.parametrize("resume", [False, True])
def test_a_run_refused_before_any_work_can_be_tried_with_other_settings(resume: bool, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="smallest schedule"):
        pipeline(tmp_path, time_budget=1e-3).schedule()
    estimated = pipeline(tmp_path, time_budget=600.0, resume=resume)
    estimated.schedule()
    assert pipeline(tmp_path, time_budget=600.0, resume=True).stages.finished("estimate")
    again = pipeline(tmp_path, resume=resume, strategy="", placement=(0, 1), comparison=None)
    assert not again.stages.finished("estimate")
    again.run()
    with pytest.raises(InputError, match="already contains a run"):
        pipeline(tmp_path, strategy="", placement=(0, 1), comparison=None)
    with pytest.raises(InputError, match="another comparison, placement, strategy"):
        pipeline(tmp_path, resume=True)
