"""Recipes that suit the data, shortened and lengthened ones, and requests that are refused."""

import dataclasses

import pytest
import torch

from sphynx.data.open import open_data
from sphynx.design.request import (
    FEW_IMAGES,
    LEAST_SEARCH_STEPS,
    LEAST_STEPS,
    long_enough,
    placement_recipe,
    search_recipe,
    training_recipe,
)
from sphynx.errors import InputError
from sphynx.search.epochs import Halves
from sphynx.search.placement.recipe import load_placement_recipe
from sphynx.search.recipe import load_recipe as load_search_recipe
from sphynx.train.recipe import load_recipe, with_epochs
from tests.design.requests import TRAINING, request
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


def test_images_that_are_held_out_make_no_steps() -> None:
    images = data()
    for batch_size, held_out in ((12, 0.5), (12, 0.29), (16, 0.9)):
        _, longer = training_recipe("auto", {"batch_size": batch_size, "held_out": held_out}, images)
        fitted, _ = images.train.split(held_out, 0)
        steps = len(fitted) // min(batch_size, len(fitted))
        assert longer.epochs * steps >= LEAST_STEPS > (longer.epochs - 1) * steps


def test_searches_of_few_images_get_more_epochs_unless_their_number_is_given() -> None:
    images, many = data(), open_data("digits")
    for recipe_of, load in ((search_recipe, load_search_recipe), (placement_recipe, load_placement_recipe)):
        assert recipe_of("auto", {}, many) == load("small")
        assert recipe_of("small", {}, images) == load("small")
        assert recipe_of("auto", {"epochs": 3}, images).epochs == 3
        found = recipe_of("auto", {"batch_size": 12}, images)
        halves = Halves(images, 12, flip=False, crop=False, seed=0, device="cpu")
        assert halves.steps == 2 and found == load("small", {"batch_size": 12, "epochs": LEAST_SEARCH_STEPS // 2})


def test_distillation_is_refused() -> None:
    with pytest.raises(InputError, match="no teacher"):
        request(training=dataclasses.replace(TRAINING, distillation="kl"))
