"""How long a ranking's trainings are, and from how many images on there is one."""

import dataclasses
from pathlib import Path

import pytest

from sphynx.design import retraining
from sphynx.design.request import long_enough
from sphynx.design.retraining import LEAST_RANKING_STEPS, least_ranking_epochs, ranking_recipe, too_few_to_rank
from sphynx.search.ranking import Round
from sphynx.train.recipe import load_recipe
from tests.design.requests import TRAINING, pipeline

SMALL = load_recipe("small")


def test_the_digits_and_cifar_are_ranked_by_an_eighth_of_the_epochs() -> None:
    assert ranking_recipe(SMALL, 1_438).epochs == 2
    assert ranking_recipe(load_recipe("fast", {"epochs": 120}), 50_000).epochs == 15


@pytest.mark.parametrize("images", [1_000, 300, 128, 20])
@pytest.mark.parametrize("held_out", [0.0, 0.3])
def test_few_images_are_ranked_by_enough_steps(images: int, held_out: float) -> None:
    training = long_enough(dataclasses.replace(SMALL, held_out=held_out), images)
    ranking = ranking_recipe(training, images)
    fitted = int(images * 0.8 * (1 - held_out))
    steps = fitted // min(64, fitted)
    assert ranking.epochs * steps >= LEAST_RANKING_STEPS and ranking.epochs < training.epochs


def test_a_ranking_is_no_longer_than_the_training() -> None:
    assert ranking_recipe(SMALL, 128).epochs == SMALL.epochs
    assert least_ranking_epochs(SMALL, 128) == LEAST_RANKING_STEPS


def test_a_thousand_images_can_be_ranked() -> None:
    assert not too_few_to_rank(1_000) and too_few_to_rank(999)


def test_no_round_of_a_ranking_is_too_short_to_say_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two steps an epoch: for eight steps six random cells are not first trained for two epochs."""
    monkeypatch.setattr(retraining, "LEAST_RANKING_STEPS", 8)
    training = dataclasses.replace(TRAINING, epochs=32)
    asked = pipeline(tmp_path, rivals=6, comparison=None, placement="fixed", training=training)
    ranking = next(estimate for estimate in asked.schedule() if estimate.stage == "ranking")
    assert ranking.rounds == (Round(8, 4),) and ranking.least_epochs == 4
    result = asked.run()
    assert {one.epochs for entry in result.ranking for one in entry.trainings} == {4}
