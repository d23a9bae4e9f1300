"""The command files of shipped networks whose cards have no chain: designs and recipes are those of the cards."""

from __future__ import annotations

import json
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from sphynx.space.files import load_any_design
from sphynx.train.recipe import load_recipe
from sphynx.zoo.chain import chain_of
from sphynx.zoo.shipped import load_card, model_names
from tests.warm_process import Warm

ROOT = Path(__file__).parents[2]
FILES = {file.stem: file for file in (ROOT / "reproduction" / "rebuild").glob("*.commands")}
KEPT_TEACHERS = {"wide-resnet": "teacher-wrn16-8-85", "resnet18": "tiny-teacher-resnet18-52"}  # in results/stream


def _commands(name: str) -> list[list[str]]:
    return [shlex.split(line) for line in FILES[name].read_text().splitlines() if not line.startswith("#")]


def _value(words: list[str], flag: str) -> str:
    return words[words.index(flag) + 1]


def _recipe(words: list[str]) -> dict[str, Any]:
    given = [word.partition("=") for flag, word in pairwise(words) if flag == "--set"]
    settings = {name: _read(text) for name, _, text in given} | {"epochs": int(_value(words, "--epochs"))}
    return load_recipe(_value(words, "--recipe"), settings).to_json()


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def test_each_shipped_network_has_a_chain_or_a_file() -> None:
    assert set(FILES) == {name for name in model_names() if chain_of(load_card(name)) is None}


@pytest.mark.parametrize("name", sorted(FILES))
def test_the_last_training_has_the_recipe_on_the_card(name: str) -> None:
    card, found = load_card(name), _recipe(_commands(name)[-1])
    differs = {key for key, value in card["recipe"].items() if found[key] != value}
    assert not differs


@pytest.mark.parametrize("name", sorted(FILES))
def test_designs_are_those_that_ship_and_teachers_those_on_the_card(name: str, warm: Warm, tmp_path: Path) -> None:
    made = {}
    for words in _commands(name):
        if words[1] == "show":
            out = tmp_path / _value(words, "-o")
            assert warm.sphynx(*words[1:-1], str(out)).returncode == 0
            made[out.name] = load_any_design(out).to_json() | {"name": ""}
    card, shipped = load_card(name), ROOT / "models/src/sphynx_models" / name / "design.json"
    assert made["design.json"] == load_any_design(shipped).to_json() | {"name": ""}
    teacher = made["large.json" if "large.json" in made else "teacher.json"]
    assert teacher == {**card["teacher"], "name": ""}


@pytest.mark.parametrize("name", sorted(name for name in FILES if name.startswith("stream-")))
def test_teachers_learn_as_the_kept_ones_did(name: str) -> None:
    shown, trained = _commands(name)[:2]
    kept = json.loads((ROOT / "results/stream" / f"{KEPT_TEACHERS[shown[2]]}.json").read_text())["config"]["recipe"]
    found = _recipe(trained)
    assert not {key for key, value in kept.items() if found[key] != value}
