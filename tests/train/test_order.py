"""Recipes that suit the data, shortened and lengthened ones, and orders that are refused."""

import dataclasses

import pytest
import torch

from sphynx.errors import InputError
from sphynx.train.order import FEW_IMAGES, LEAST_STEPS, long_enough, training_recipe, with_epochs
from sphynx.train.recipe import load_recipe
from tests.train.designs import TRAINING, order
from tests.train.small import data


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
