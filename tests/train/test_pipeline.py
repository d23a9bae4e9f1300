"""The design pipeline: its stages end to end, resumed after an interrupt in each, fitted to a time budget."""

import dataclasses
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from sphynx.data.images import ImageSet, make_data
from sphynx.errors import InputError
from sphynx.network.model import load_model
from sphynx.report.sources import read_sources
from sphynx.run.folder import RunFolder
from sphynx.run.interrupt import InterruptedWorkError
from sphynx.run.stages import Stages
from sphynx.search.location import load_location_recipe
from sphynx.search.recipe import load_recipe as load_search_recipe
from sphynx.search.rounds import Round
from sphynx.space.account import relu_count
from sphynx.space.design import Design, Stem
from sphynx.space.files import load_design
from sphynx.space.genotype import Genotype, load_genotype
from sphynx.space.published import SPHYNX
from sphynx.space.tally import Shape
from sphynx.train import pipeline as module
from sphynx.train import retraining
from sphynx.train.comparison import Row, gain
from sphynx.train.loop import DivergedError, Job
from sphynx.train.order import FEW_IMAGES, LEAST_STEPS, Order, long_enough, training_recipe, with_epochs
from sphynx.train.outline import usual_reduce_cells
from sphynx.train.pipeline import Pipeline
from sphynx.train.recipe import load_recipe
from sphynx.train.retraining import retrainer
from sphynx.train.timing import MARGIN, Estimate, fit, parse_duration
from tests.train.small import data

CPU = torch.device("cpu")
STAGES = ("cells", "placement", "training", "comparison")
TRAINING = load_recipe("smoke", {"epochs": 1, "batch_size": 16, "crop": False, "auxiliary_weight": 0.0})


def order(**changes: Any) -> Order:
    """48 ReLUs: C = 1, D = 3 on images of 4x4."""
    asked = Order(
        relu_budget=48,
        search=load_search_recipe("smoke", {"epochs": 1, "nodes": 4, "batch_size": 12}),
        location=load_location_recipe("smoke", {"epochs": 1, "batch_size": 12}),
        training=TRAINING,
        comparison=TRAINING,
        strategy="gdas",
    )
    return dataclasses.replace(asked, **changes)


def pipeline(out: Path, *, resume: bool = False, **changes: Any) -> Pipeline:
    return Pipeline(order(**changes), data(), out, device=CPU, resume=resume, quiet=True)


def test_all_stages_leave_a_network_and_a_comparison(tmp_path: Path) -> None:
    result = pipeline(tmp_path, seeds=2).run()
    assert [row["cells"] for row in result["comparison"]["rows"]] == [
        "searched cells (gdas)", "random cells", "published cells",
    ]  # fmt: skip
    assert all(len(row["accuracies"]) == 2 for row in result["comparison"]["rows"])
    assert [g["against"] for g in result["comparison"]["gains"]] == ["random cells", "published cells"]
    assert list(result["minutes"]) == ["estimate", *STAGES]
    design = load_design(tmp_path / "design.json")
    assert design.genotype == load_genotype(tmp_path / "genotype.json") and result["relus"] == 48
    assert load_model(tmp_path).design == design
    first = json.loads((tmp_path / "training" / "seed-0" / "result.json").read_text())
    assert first["accuracy"] == result["accuracies"][0]
    assert json.loads((tmp_path / "result.json").read_text()) == json.loads(json.dumps(result))
    random = [load_design(tmp_path / "comparison" / "random" / f"seed-{seed}" / "design.json") for seed in (0, 1)]
    assert random[0].genotype != random[1].genotype and random[0].reduce_positions == design.reduce_positions


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was never interrupted."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    out = tmp_path_factory.mktemp("whole")
    pipeline(out, rivals=1).run()
    torch.set_num_threads(before)
    return out


@pytest.mark.parametrize(
    ("stage", "where", "function", "nth"),
    [
        ("estimate", module, "training_epoch_seconds", 1),
        ("cells", module, "search_cells", 1),
        ("ranking", retraining, "train_seeds", 2),  # after that of the found cells
        ("placement", module, "locate", 1),
        ("training", module, "train_seeds", 1),
        ("comparison", module, "train_seeds", 2),  # after the network's own training
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
    assert stopped.value.remedy == "Continue with: the same command with --resume auto"
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
    real, calls = retraining.train_seeds, []

    def diverges_first(job: Job) -> dict[str, Any]:
        calls.append(job)
        if len(calls) == 1:
            raise DivergedError("the loss is not finite", remedy="Lower the rate.")
        return real(job)

    monkeypatch.setattr(retraining, "train_seeds", diverges_first)
    result = pipeline(tmp_path, rivals=1, comparison=None).run()
    last = result["ranking"][-1]
    assert (last["cells"], last["held_out"]) == ("searched cells (gdas)", 0.0)
    assert result["cells"] != "searched cells (gdas)"


def test_what_is_compared_with_was_not_ranked(tmp_path: Path) -> None:
    pipeline(tmp_path, rivals=2, seeds=2).run()
    ranked = {load_design(file).genotype for file in tmp_path.glob("ranking/*/*/design.json")}
    compared = {load_design(file).genotype for file in tmp_path.glob("comparison/random/*/design.json")}
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
    asked = pipeline(tmp_path, rivals=2, training=dataclasses.replace(TRAINING, epochs=16))
    result = asked.run()
    assert [estimate.stage for estimate in asked.schedule()] == ["cells", "ranking", *STAGES[1:]]
    assert len(seen) == 4 and seen[1] == SPHYNX and len(set(seen)) == 4
    held_out = [entry["held_out"] for entry in result["ranking"]]
    assert held_out == sorted(held_out, reverse=True) and len(held_out) == 4
    assert result["ranking"][0]["cells"] == result["cells"] == "published cells"
    assert load_design(tmp_path / "design.json").genotype == SPHYNX
    assert [row["cells"] for row in result["comparison"]["rows"]] == ["published cells", "random cells"]
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
    asked: dict[str, Any] = {"rivals": 6, "comparison": None, "training": dataclasses.replace(TRAINING, epochs=32)}
    monkeypatch.setattr(module, "training_epoch_seconds", lambda _job: 1.0)
    real, calls = retraining.train_seeds, list[Job]()

    def counted(job: Job) -> dict[str, Any]:
        calls.append(job)
        if len(calls) == 8:  # the second of the second round
            raise KeyboardInterrupt
        return real(job)

    monkeypatch.setattr(retraining, "train_seeds", counted)
    started = pipeline(tmp_path, **asked)
    ranking = next(estimate for estimate in started.schedule() if estimate.stage == "ranking")
    assert ranking.rounds == (Round(6, 2), Round(4, 4))
    assert ranking.seconds == pytest.approx(0.8 * (6 * 2 + 4 * 4))
    with pytest.raises(InterruptedWorkError):
        started.run()
    finished = {file: file.stat().st_mtime_ns for file in tmp_path.glob("ranking/*/*/result.json")}
    assert sorted(file.parts[-3] for file in finished) == ["2-epochs"] * 6 + ["4-epochs"]

    result = pipeline(tmp_path, resume=True, **asked).run()
    assert all(file.stat().st_mtime_ns == before for file, before in finished.items())
    assert len(list(tmp_path.glob("ranking/*/*/result.json"))) == 10
    ranked = result["ranking"]
    lengths = {entry["cells"]: [one["epochs"] for one in entry["trainings"]] for entry in ranked}
    assert lengths.pop("searched cells (gdas)") == lengths.pop("published cells") == [4]
    assert list(lengths.values()) == [[2, 4]] * 2 + [[2]] * 4
    assert all(entry["held_out"] == entry["trainings"][-1]["held_out"] for entry in ranked)
    assert result["cells"] == ranked[0]["cells"]
    rivals = [entry["trainings"][0]["held_out"] for entry in ranked if entry["cells"] in lengths]
    assert min(rivals[:2]) >= max(rivals[2:])


def _without_times(result: dict[str, Any]) -> dict[str, Any]:
    rows = [{**row, "minutes": 0} for row in result["comparison"]["rows"]]
    return {**result, "minutes": 0, "comparison": {**result["comparison"], "rows": rows}}


def test_published_cells_need_no_search_and_given_places_no_placement(tmp_path: Path) -> None:
    result = pipeline(tmp_path, strategy="", placement=(0, 2)).run()
    assert result["reduce_positions"] == [0, 2] and result["placed_by"] == "given"
    assert [row["cells"] for row in result["comparison"]["rows"]] == ["published cells", "random cells"]
    assert "cells" not in result["minutes"] and "placement" not in result["minutes"]


def test_reduce_cells_stay_within_the_budget(tmp_path: Path) -> None:
    """Images of 4x4 can be halved twice; a third reduce cell leaves one pixel as it is, with four times the ReLUs."""
    with pytest.raises(InputError, match="with 3 reduce cells the network has at least 96 ReLUs, the budget is 48"):
        pipeline(tmp_path, reduce_cells=3, candidates="all")
    assert not list(tmp_path.iterdir())
    large = torch.zeros(6, 1, 28, 28, dtype=torch.uint8)  # 28, 14, 7, 4: the third adds three tenths to what follows
    images = ImageSet(large, torch.arange(6) % 3, ("a", "b", "c"))
    asked = order(relu_budget=28 * 28 * 7, reduce_cells=3, candidates="all")
    late = Pipeline(asked, make_data("large", images, images, where="large"), tmp_path, device=CPU)
    assert late.design.depth == 7 and {place[-1] for place in late.places} == {6}
    assert late.design.reduce_positions in late.places  # it is timed before it is placed


@pytest.mark.parametrize(
    ("channels", "depth", "side", "stem", "usual"),
    [
        (5, 5, 32, "small", 3),
        (5, 5, 64, "small", 3),
        (5, 10, 32, "small", 3),
        (10, 10, 32, "small", 2),  # 35 candidates of 127M parameters would be placed at once
        (5, 4, 32, "small", 2),  # no choice of places
        (11, 5, 32, "small", 2),  # 704 channels
        (5, 5, 28, "small", 2),  # 28, 14, 7, 4: more ReLUs
        (5, 5, 16, "small", 2),
        (10, 10, 224, "imagenet", 2),  # the stem leaves 28
        (5, 5, 256, "imagenet", 3),
    ],
)
def test_a_third_reduce_cell_where_it_costs_no_relus(
    channels: int, depth: int, side: int, stem: Stem, usual: int
) -> None:
    design = Design(SPHYNX, channels, depth, (0, 1), Shape(3, side, side), stem=stem, conv_stack="single")
    assert usual_reduce_cells(design, "paper") == usual
    if usual == 3:
        thrice = dataclasses.replace(design, reduce_positions=(0, 1, 3))
        assert relu_count(thrice) == relu_count(design)


def test_a_third_reduce_cell_is_not_usual_where_its_candidates_are_too_many() -> None:
    design = Design(SPHYNX, 5, 10, (0, 1), Shape(3, 32, 32), conv_stack="single")
    assert usual_reduce_cells(design, "paper") == 3  # 35 candidates
    assert usual_reduce_cells(design, "all") == 2  # 120


def test_cells_are_searched_and_ranked_with_the_usual_reduce_cells(tmp_path: Path) -> None:
    images = ImageSet(torch.zeros(6, 1, 32, 32, dtype=torch.uint8), torch.arange(6) % 3, ("a", "b", "c"))
    asked = order(relu_budget=32 * 32 * 5, search=load_search_recipe("small", {"depth": 6}))
    wide = Pipeline(asked, make_data("large", images, images, where="large"), tmp_path, device=CPU)
    assert wide.design.depth == 5 and {len(place) for place in wide.places} == {3}
    assert wide.design.reduce_positions == (0, 1, 3)  # timed and ranked there until it is placed
    assert wide.outline.search_recipe.reduce_positions == (0, 1, 4)


@pytest.mark.parametrize(
    ("changes", "reduce_at"),
    [
        ({}, (0, 1)),
        ({"reduce_cells": 1}, (0,)),
        ({"placement": (1, 2)}, (1, 2)),
        ({"placement": "fixed"}, (1, 2)),
        ({"placement": (1, 2), "search": load_search_recipe("smoke", {"depth": 6})}, (2, 4)),
    ],
)
def test_the_supernet_reduces_as_its_network_will(
    tmp_path: Path, changes: dict[str, Any], reduce_at: tuple[int, ...]
) -> None:
    assert pipeline(tmp_path, **changes).outline.search_recipe.reduce_positions == reduce_at


def test_a_supernet_too_shallow_for_its_network_is_refused_before_any_work(tmp_path: Path) -> None:
    shallow = load_search_recipe("smoke", {"depth": 1, "reduce_at": []})
    with pytest.raises(InputError, match="a supernet of depth 1 has no room"):
        pipeline(tmp_path, search=shallow)
    assert not list(tmp_path.iterdir())


def test_a_comparison_by_another_recipe_trains_the_network_by_it_too(tmp_path: Path) -> None:
    longer = dataclasses.replace(TRAINING, epochs=2)
    result = pipeline(tmp_path, strategy="", placement="fixed", training=longer).run()
    assert result["training"]["epochs"] == 2 and result["comparison"]["recipe"]["epochs"] == 1
    own = json.loads((tmp_path / "comparison" / "own" / "seed-0" / "result.json").read_text())
    assert result["comparison"]["rows"][0]["accuracies"] == [own["accuracy"]]
    alone = pipeline(tmp_path / "alone", strategy="", placement="fixed", comparison=None).run()
    assert alone["comparison"]["rows"] == []


def test_a_time_budget_scales_all_epochs_and_refuses_too_little() -> None:
    asked = [Estimate("cells", 1.0, 10, 2), Estimate("training", 2.0, 20, 3, runs=2)]
    assert fit(asked, 1000.0, "") == tuple(asked)
    fitted = fit(asked, 50.0, "")
    assert sum(e.seconds for e in fitted) <= MARGIN * 50
    assert [e.epochs for e in fitted] == [5, 10]
    with pytest.raises(InputError, match=r"smallest schedule \(cells 2 epochs x 1, training 3 epochs x 2\)") as refused:
        fit(asked, 10.0, "Give more.")
    assert refused.value.remedy == "Give more."


def test_a_ranking_is_fitted_by_what_its_rounds_cost() -> None:
    asked = [Estimate("ranking", 1.0, 15, 2, runs=16, drawn=14), Estimate("training", 1.0, 120, 3)]
    assert sum(e.seconds for e in asked) == 113 + 120
    for budget in range(50, 250, 7):
        fitted = fit(asked, budget, "")
        assert sum(e.seconds for e in fitted) <= MARGIN * budget
    assert fit(asked, (113 + 121) / MARGIN, "") == tuple(asked)


def test_an_estimate_of_an_older_run_is_read(tmp_path: Path) -> None:
    found = pipeline(tmp_path).schedule()
    log = json.loads((tmp_path / "stages.json").read_text())
    for entry in log["stages"]["estimate"]["result"]["stages"]:
        entry["in_rounds"] = bool(entry.pop("drawn"))
    (tmp_path / "stages.json").write_text(json.dumps(log))
    again = pipeline(tmp_path, resume=True).schedule()
    assert [(one.stage, one.epochs, one.runs) for one in again] == [(one.stage, one.epochs, one.runs) for one in found]


def test_a_pipeline_refuses_a_time_budget_that_is_too_small(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="smallest schedule") as refused:
        pipeline(tmp_path, time_budget=1e-3).run()
    assert "leave out --search" in refused.value.remedy


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
    with pytest.raises(InputError, match="holds a run"):
        pipeline(tmp_path, strategy="", placement=(0, 1), comparison=None)
    with pytest.raises(InputError, match="another comparison, placement, strategy"):
        pipeline(tmp_path, resume=True)


def test_durations_are_read_and_nonsense_is_refused() -> None:
    assert [parse_duration(text) for text in ("90s", "15m", "1h30m", "0.5h")] == [90, 900, 5400, 1800]
    for text in ("", "15", "m", "-3m", "soon"):
        with pytest.raises(InputError, match="not a time"):
            parse_duration(text)


def test_a_shorter_recipe_keeps_its_shape() -> None:
    recipe = load_recipe("paper-imagenet")
    assert with_epochs(recipe, 12).decay_epochs == (3, 6, 9)
    assert with_epochs(load_recipe("fast"), 6).warmup_epochs == 0.5
    assert with_epochs(recipe, recipe.epochs) == recipe


def test_few_images_get_more_epochs() -> None:
    small = load_recipe("small")
    assert long_enough(small, 1438) == small
    for images, epochs in ((128, 66), (63, 132), (2, 132)):
        assert long_enough(small, images) == with_epochs(small, epochs)


def test_what_is_given_wins_over_what_the_data_suggest() -> None:
    images = data()
    count, small = len(images.train), load_recipe("small")
    assert training_recipe("auto", {}, images) == ("small", long_enough(small, count))
    assert training_recipe("smoke", {}, images) == ("smoke", load_recipe("smoke"))
    assert training_recipe("auto", {"epochs": 3}, images) == ("small", load_recipe("small", {"epochs": 3}))
    _, longer = training_recipe("auto", {"batch_size": 12, "warmup_epochs": 8.0}, images)
    assert longer.epochs * (count // 12) >= LEAST_STEPS and (longer.batch_size, longer.warmup_epochs) == (12, 8.0)
    many = dataclasses.replace(images, train=images.train.subset(torch.zeros(FEW_IMAGES + 1, dtype=torch.int64)))
    assert training_recipe("auto", {}, many) == ("fast", load_recipe("fast"))


def test_distillation_is_refused() -> None:
    with pytest.raises(InputError, match="no teacher"):
        order(training=dataclasses.replace(TRAINING, distillation="kl"))


def test_gains_carry_their_standard_error() -> None:
    def row(*accuracies: float, deviation: float | None) -> Row:
        return Row("x", accuracies, sum(accuracies) / len(accuracies), deviation, 1, 0.0)

    lost = gain(row(0.90, 0.92, deviation=0.02), row(0.95, 0.97, deviation=0.02))
    assert lost.points == pytest.approx(-5) and lost.standard_error == pytest.approx(2)
    assert str(lost) == "lost 5.00 points against x (standard error 2.00)"
    close = gain(row(0.90, 0.92, deviation=0.02), row(0.90, 0.91, deviation=0.02))
    assert "within chance" in str(close)
    assert "no spread" in str(gain(row(0.9, deviation=None), row(0.8, deviation=None)))


def test_a_checkpoint_of_an_unfinished_stage_is_work(tmp_path: Path) -> None:
    stages = Stages(tmp_path, {"seed": 0}, resume=False)
    with pytest.raises(KeyboardInterrupt):
        stages.run("one", lambda: _save_and_stop(tmp_path / "one"))
    with pytest.raises(InputError, match="holds a run"):
        Stages(tmp_path, {"seed": 0}, resume=False)
    with pytest.raises(InputError, match="another seed"):
        Stages(tmp_path, {"seed": 1}, resume=True)


def _save_and_stop(folder: Path) -> dict[str, Any]:
    RunFolder(folder).save_checkpoint({"epoch": 1})
    raise KeyboardInterrupt


def test_a_folder_in_which_a_stage_runs_is_not_started_anew(tmp_path: Path) -> None:
    stages, log = Stages(tmp_path, {"seed": 0}, resume=False), tmp_path / "stages.json"

    def work() -> dict[str, Any]:
        before = log.read_text()
        with pytest.raises(InputError, match="another process"):
            Stages(tmp_path, {"seed": 1}, resume=False)
        with pytest.raises(InputError, match="another process"):
            Stages(tmp_path, {"seed": 0}, resume=True).run("one", dict)
        assert log.read_text() == before
        return {}

    stages.run("one", work)


def test_stages_count_the_time_of_interrupted_attempts(tmp_path: Path) -> None:
    stages = Stages(tmp_path, {"seed": 0}, resume=False)
    with pytest.raises(ValueError, match="stop"):
        stages.run("one", lambda: (_ for _ in ()).throw(ValueError("stop")))
    again = Stages(tmp_path, {"seed": 0}, resume=True)
    assert not again.finished("one") and again.run("one", lambda: {"x": 1}) == {"x": 1}
    assert Stages(tmp_path, {"seed": 0}, resume=True).run("one", dict) == {"x": 1}
    with pytest.raises(InputError, match="holds a run"):
        Stages(tmp_path, {"seed": 0}, resume=False)
    with pytest.raises(InputError, match="another seed"):
        Stages(tmp_path, {"seed": 1}, resume=True)
