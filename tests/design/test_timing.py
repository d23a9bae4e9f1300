"""Parts of an estimate, and how it is fitted to a budget. How long anything takes is not asserted."""

from pathlib import Path

import pytest
import torch

from sphynx.design import timing
from sphynx.design.time_budget import MARGIN, Estimate, fit, parse_duration
from sphynx.errors import InputError
from sphynx.search.epochs import Halves
from sphynx.search.recipe import load_recipe
from sphynx.search.search import Searcher
from sphynx.train.loop import finish_training
from sphynx.train.results import TrainResult
from tests.train.small import data, job


@pytest.mark.parametrize(
    ("strategy", "warming"), [("darts", 2), ("pc-darts", 3), ("gdas", 2), ("gaea", 2), ("enas", 2), ("random", 0)]
)
def test_a_search_is_timed_in_and_after_its_warm_up(
    strategy: str, warming: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten epochs: of `warming` only w learns, which here takes a second; later ones take three."""

    def steps(searcher: Searcher, _halves: Halves, epoch: int) -> float:
        return 1.0 if epoch < searcher.strategy.warmup_epochs else 3.0

    monkeypatch.setattr(timing, "_steps_seconds", steps)
    monkeypatch.setattr(timing, "_finish_seconds", lambda *_: 0.0)
    recipe = load_recipe("smoke", {"epochs": 10, "nodes": 4, "batch_size": 12, "warmup": 0.2, "pc_warmup": 0.3})
    found = timing.search_epoch_seconds(data(), strategy, recipe, torch.device("cpu"))
    assert found == pytest.approx((warming + 3 * (10 - warming)) / 10)


def test_a_time_budget_scales_all_epochs_and_refuses_too_little() -> None:
    asked = [Estimate("cells", 1.0, 10, 2), Estimate("training", 2.0, 20, 3, runs=2)]
    assert fit(asked, 1000.0, "") == tuple(asked)
    fitted = fit(asked, 50.0, "")
    assert sum(e.seconds for e in fitted) <= MARGIN * 50
    assert [e.epochs for e in fitted] == [5, 10]
    with pytest.raises(InputError, match=r"smallest schedule \(cells 2 epochs x 1, training 3 epochs x 2\)") as refused:
        fit(asked, 10.0, "Give more.")
    assert refused.value.remedy == "Give more."


def test_what_a_run_does_at_its_end_is_counted_once_for_each() -> None:
    trainings = Estimate("training", 2.0, 20, 3, runs=2, end_seconds=5.0)
    assert trainings.seconds == 2 * (20 * 2 + 5) and trainings.least.seconds == 2 * (3 * 2 + 5)
    assert [e.epochs for e in fit([trainings], 70 / MARGIN, "")] == [15]
    ranking = Estimate("ranking", 1.0, 15, 2, runs=16, drawn=14, end_seconds=1.0)
    assert ranking.seconds == 113 + (14 + 5 + 4)  # a cell is trained anew in each round
    assert Estimate.from_json(ranking.to_json()) == ranking


def test_the_end_of_a_run_is_timed_by_doing_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, done = finish_training, list[TrainResult]()
    monkeypatch.setattr(timing, "finish_training", lambda *words: done.append(real(*words)))
    end = timing.run_end(job(tmp_path / "run"))
    assert len(done) >= 2 and all(result.test_images == 1 for result in done)
    assert end.files_seconds > 0 and end.image_seconds > 0 and not (tmp_path / "run").exists()
    assert timing.RunEnd(2.0, 0.5).seconds(30) == 17


def test_a_student_that_learns_from_views_alone_is_timed(tmp_path: Path) -> None:
    """Labels have no part in it, and no teacher runs: without answers there would be nothing to learn from."""
    taught = job(tmp_path / "run", epochs=1, distillation="kl", label_weight=0.0, view_epochs=1)
    assert timing.training_epoch_seconds(taught, from_views=True) > 0


def test_a_ranking_is_fitted_by_what_its_rounds_cost() -> None:
    asked = [Estimate("ranking", 1.0, 15, 2, runs=16, drawn=14), Estimate("training", 1.0, 120, 3)]
    assert sum(e.seconds for e in asked) == 113 + 120
    for budget in range(50, 250, 7):
        fitted = fit(asked, budget, "")
        assert sum(e.seconds for e in fitted) <= MARGIN * budget
    assert fit(asked, (113 + 121) / MARGIN, "") == tuple(asked)


def test_durations_are_read_and_nonsense_is_refused() -> None:
    assert [parse_duration(text) for text in ("90s", "15m", "1h30m", "0.5h")] == [90, 900, 5400, 1800]
    for text in ("", "15", "m", "-3m", "soon"):
        with pytest.raises(InputError, match="not a valid time"):
            parse_duration(text)
