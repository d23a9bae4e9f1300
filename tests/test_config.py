"""Settings from TOML tables: all faults at once."""

from dataclasses import dataclass
from typing import Literal

import pytest

from sphynx.config import read_settings
from sphynx.errors import InputError


@dataclass(frozen=True)
class Settings:
    epochs: int
    rate: float = 0.1
    schedule: Literal["cosine", "step"] = "cosine"
    milestones: tuple[int, ...] = ()
    clip: float | None = None

    def faults(self) -> list[str]:
        return ["epochs must be positive"] if self.epochs < 1 else []


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
    with pytest.raises(InputError, match="expected int"):
        read_settings(Settings, {"epochs": True}, where="t")
    with pytest.raises(InputError, match="fits a float"):
        read_settings(Settings, {"epochs": 1, "rate": 10**400}, where="t")


@pytest.mark.parametrize(
    ("table", "remedy"),
    [
        ({"epochs": 3, "colour": 1}, "Known keys are epochs, rate, schedule, milestones, clip."),
        ({"epochs": 3, "schedule": "linear"}, 'Write schedule = "cosine" (the default) or the like.'),
        ({"epochs": 3, "rate": "x", "milestones": 1}, "Write rate = 0.1, milestones = [] (the default) or the like."),
        ({"epochs": 3, "clip": "no"}, "Write no clip (the default) or the like."),
        ({}, "Add epochs."),
        ({"epochs": 0}, "Give values as the message says."),
        ({"colour": 1, "rate": "fast"}, "Known keys are epochs, rate, schedule, milestones, clip. Add epochs. "
         "Write rate = 0.1 (the default) or the like."),
    ],
)  # fmt: skip
def test_the_remedy_fits_what_is_wrong(table: dict[str, object], remedy: str) -> None:
    with pytest.raises(InputError) as caught:
        read_settings(Settings, table, where="t")
    assert caught.value.remedy == remedy


def test_tables_that_nobody_writes_have_a_remedy_of_their_own() -> None:
    with pytest.raises(InputError) as caught:
        read_settings(Settings, {"colour": 1}, where="t", remedy="Make it again.")
    assert caught.value.remedy == "Make it again."
