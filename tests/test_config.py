"""Settings from TOML tables: all faults at once, and remedies that fix them."""

import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from sphynx.config import Fault, read_settings
from sphynx.errors import InputError
from sphynx.search.placement.recipe import load_placement_recipe
from sphynx.search.recipe import load_recipe as load_search_recipe
from sphynx.train.recipe import load_recipe


@dataclass(frozen=True)
class Settings:
    epochs: int
    rate: float = 0.1
    schedule: Literal["cosine", "step"] = "cosine"
    milestones: tuple[int, ...] = ()
    clip: float | None = None

    def faults(self) -> list[str]:
        faults = ["epochs must be positive"] if self.epochs < 1 else []
        if self.rate > self.epochs >= 1:
            faults.append(Fault("the rate, which no schedule lowers, is above epochs", "rate", "epochs"))
        return faults


def test_reads_and_converts() -> None:
    table = {"epochs": 3, "rate": 1, "milestones": [1, 2], "clip": 5}
    assert read_settings(Settings, table, where="t") == Settings(3, 1.0, "cosine", (1, 2), 5.0)


def test_all_faults_at_once() -> None:
    table = {"rate": "fast", "schedule": "linear", "milestones": [1, "x"], "colour": 1, "clip": "no"}
    with pytest.raises(InputError) as caught:
        read_settings(Settings, table, where="recipe.toml")
    message = str(caught.value)
    for part in ("recipe.toml", "epochs is missing", "rate", "schedule", "milestones", "'colour'", "clip"):
        assert part in message


def test_values_are_checked() -> None:
    with pytest.raises(InputError, match="epochs must be positive") as caught:
        read_settings(Settings, {"epochs": 0}, where="t")
    assert "Known keys" not in caught.value.remedy  # the key was right
    with pytest.raises(InputError, match="expected a whole number"):
        read_settings(Settings, {"epochs": True}, where="t")
    with pytest.raises(InputError, match="fits a float"):
        read_settings(Settings, {"epochs": 1, "rate": 10**400}, where="t")


@pytest.mark.parametrize(
    ("table", "remedy"),
    [
        ({"epochs": 3, "colour": 1}, "Known keys are epochs, rate, schedule, milestones, clip."),
        ({"epochs": 3, "schedule": "linear"}, 'Write schedule = "cosine" (the default) or a similar value.'),
        (
            {"epochs": 3, "rate": "x", "milestones": 1},
            "Write rate = 0.1, milestones = [] (the default) or a similar value.",
        ),
        ({"epochs": 3, "clip": "no"}, "Write no clip (the default) or a similar value."),
        ({}, "Add epochs."),
        ({"epochs": 0}, "Change the values that the message names."),
        (
            {"colour": 1, "rate": "fast"},
            "Known keys are epochs, rate, schedule, milestones, clip. Add epochs. "
            "Write rate = 0.1 (the default) or a similar value.",
        ),
    ],
)
def test_the_remedy_fits_what_is_wrong(table: dict[str, object], remedy: str) -> None:
    with pytest.raises(InputError) as caught:
        read_settings(Settings, table, where="t")
    assert caught.value.remedy == remedy


def test_tables_that_nobody_writes_have_a_remedy_of_their_own() -> None:
    with pytest.raises(InputError) as caught:
        read_settings(Settings, {"colour": 1}, where="t", remedy="Make it again.")
    assert caught.value.remedy == "Make it again."


@pytest.mark.parametrize(
    ("table", "given", "remedy"),
    [
        ({"epochs": 3, "rate": 9.0}, {}, "Write rate = 0.1 (the default) or a similar value."),
        (
            {"epochs": 3, "rate": 2.0},
            {"rate": 9.0},
            "Write rate = 2.0 (as the recipe has it) or a similar value, or change epochs as well.",
        ),
        (
            {"epochs": 3, "rate": 2.0},
            {"epochs": 1},
            "Write epochs = 3 (as the recipe has it) or a similar value, or change rate as well.",
        ),
        ({"epochs": 3}, {"rate": 9.0}, "Write rate = 0.1 (the default) or a similar value."),
    ],
)
def test_of_values_at_odds_the_remedy_names_what_was_given(
    table: dict[str, object], given: dict[str, object], remedy: str
) -> None:
    """And no key that the sentence has as a word (`schedule`)."""
    with pytest.raises(InputError, match="no schedule lowers") as caught:
        read_settings(Settings, table, where="t", given=given)
    assert caught.value.remedy == remedy


@pytest.mark.parametrize(
    ("load", "name", "given"),
    [
        (load_search_recipe, "small", {"depth": 1}),
        (load_search_recipe, "small", {"depth": 0, "warmup": 2.0}),
        (load_search_recipe, "small", {"reduce_at": [3, 1]}),
        (load_search_recipe, "paper", {"nodes": 3, "architecture_betas": [0.5]}),
        (load_search_recipe, "smoke", {"momentum": 0.0}),
        (load_search_recipe, "smoke", {"momentum": 1.0, "weight_decay": -1.0, "final_learning_rate": -0.1}),
        (load_search_recipe, "smoke", {"architecture_betas": [1.5, 0.9], "architecture_weight_decay": -1.0}),
        (load_search_recipe, "smoke", {"enas_operation_tanh_reduce": 0.0, "enas_baseline_decay": 1.5}),
        (load_search_recipe, "smoke", {"perturbation_tune_steps": -1}),
        (load_search_recipe, "smoke", {"gaea_learning_rate": float("inf"), "architecture_betas": [0.5, float("nan")]}),
        (load_placement_recipe, "smoke", {"beta_betas": [0.5, 1.0], "beta_weight_decay": -1.0}),
        (load_recipe, "fast", {"mixup": float("nan"), "weight_decay": float("nan")}),
        (load_placement_recipe, "fast", {"beta_warmup": 1.0, "epochs": 0, "beta_betas": []}),
        (load_recipe, "small", {"warmup_epochs": 9.0}),
        (load_recipe, "small", {"epochs": 0}),
        (load_recipe, "small", {"schedule": "step"}),
        (load_recipe, "paper-imagenet", {"decay_epochs": [60, 30]}),
        (load_recipe, "fast", {"momentum": 0.0}),
        (load_recipe, "fast", {"label_weight": 0.0, "held_out": 1.0, "learning_rate": 0}),
        (load_recipe, "fast", {"precision": "fp8", "epochs": "many"}),
    ],
)
def test_what_a_remedy_says_mends_the_recipe(
    load: Callable[[str, dict[str, Any]], object], name: str, given: dict[str, Any]
) -> None:
    """Only keys that were given are named: nobody is sent to a value that was not theirs."""
    with pytest.raises(InputError) as caught:
        load(name, given)
    written = ", ".join(re.findall(r"Write (.*?) \((?:as the recipe has it|the default)\)", caught.value.remedy))
    fixed = tomllib.loads(re.sub(r", (?=\w+ = )", "\n", written))
    assert set(fixed) <= set(given)
    load(name, given | fixed)
