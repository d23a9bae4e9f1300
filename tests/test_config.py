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
