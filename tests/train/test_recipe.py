"""Recipes: the paper's appendix value by value; every fault of a file at once."""

from pathlib import Path
from typing import Any

import pytest

from sphynx.errors import InputError
from sphynx.train.recipe import SHELF, load_recipe

# Tables "Final network training hyperparameter protocol" (CIFAR-100 and Tiny-ImageNet; ImageNet) of the appendix.
SMALL_IMAGES: dict[str, Any] = {
    "optimizer": "sgd",
    "learning_rate": 0.025,
    "nesterov": True,
    "final_learning_rate": 0.0,
    "momentum": 0.9,
    "schedule": "cosine",
    "weight_decay": 0.0003,
    "batch_size": 96,
    "flip": True,
    "crop": True,
    "cutout": 0,
    "drop_path": 0.2,
    "grad_clip": 5.0,
    "auxiliary_weight": 0.4,
}
IMAGENET: dict[str, Any] = {
    "optimizer": "sgd",
    "learning_rate": 0.1,
    "nesterov": True,
    "schedule": "step",
    "momentum": 0.9,
    "decay_epochs": (30, 60, 90),
    "decay_factor": 0.1,
    "epochs": 120,
    "weight_decay": 0.0003,
    "batch_size": 768,
    "flip": True,
    "crop": True,
    "cutout": 0,
    "drop_path": 0.0,
    "label_smoothing": 0.0,
    "auxiliary_weight": 0.4,
    "grad_clip": 5.0,
}


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("paper-cifar100", {**SMALL_IMAGES, "epochs": 600}),
        ("paper-tiny", {**SMALL_IMAGES, "epochs": 250}),
        ("paper-imagenet", IMAGENET),
    ],
)
def test_paper_recipes_are_the_appendix(name: str, values: dict[str, Any]) -> None:
    recipe = load_recipe(name)
    assert {key: getattr(recipe, key) for key in values} == values


def test_all_recipes_load_and_can_be_overridden() -> None:
    assert {"paper-cifar100", "paper-tiny", "paper-imagenet", "fast", "smoke"} <= set(SHELF.names())
    for name in SHELF.names():
        assert load_recipe(name, {"epochs": 7, "warmup_epochs": 0}).epochs == 7


def test_the_released_training_differs_from_the_papers_in_what_its_file_says() -> None:
    paper, released = (load_recipe(name).to_json() for name in ("paper-cifar100", "released-cifar100"))
    differ = {name for name in paper if paper[name] != released[name]}
    assert differ == {"nesterov", "precision", "test_each_epoch"}


def test_all_faults_at_once(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('epochs = "ten"\nschedule = "linear"\ncolour = 3\n')
    with pytest.raises(InputError) as caught:
        load_recipe(str(file))
    for part in ("mine.toml", "3 errors", "epochs", "schedule", "'colour'"):
        assert part in str(caught.value)
    file.write_text('epochs = 0\ndrop_path = 1.5\nlearning_rate = 0\nschedule = "step"\ndecay_epochs = [3, 2]\n')
    with pytest.raises(InputError) as caught:
        load_recipe(str(file))
    for part in ("4 errors", "epochs must", "drop_path must", "learning_rate must", "decay_epochs must ascend"):
        assert part in str(caught.value)


def test_nothing_to_learn_from_is_a_fault() -> None:
    with pytest.raises(InputError, match="nothing to learn from"):
        load_recipe("smoke", {"label_weight": 0.0})
    assert load_recipe("smoke", {"label_weight": 0.0, "distillation": "kl"}).label_weight == 0


def test_what_is_no_recipe_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere") as caught:
        load_recipe("nowhere")
    assert "paper-cifar100" in caught.value.remedy
    (tmp_path / "bad.toml").write_text("epochs = = 3")
    with pytest.raises(InputError, match="not valid TOML"):
        load_recipe(str(tmp_path / "bad.toml"))
