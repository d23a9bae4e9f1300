"""A chain that is run again: what is refused before anything runs, and what of it fails."""

import json
from pathlib import Path

import pytest

from sphynx.api.rebuilding import load_chain, rebuild_model
from sphynx.errors import InputError, SphynxError
from sphynx.zoo.chain import chain_of
from sphynx.zoo.shipped import load_card, model_names


def write_card(folder: Path, *commands: str, needs: tuple[str, ...] = ()) -> None:
    (folder / "made").mkdir(parents=True)
    chain = {"needs": needs, "commands": [line.split() for line in commands], "makes": "run", "trainings": []}
    card = {"format": "sphynx-model/1", "name": "made", "accuracy": 0.5, "chain": chain}
    (folder / "made" / "card.json").write_text(json.dumps(card))


def test_a_command_that_fails_is_named(tmp_path: Path) -> None:
    write_card(tmp_path / "models", "sphynx show no-such-design.json")
    told: list[str] = []
    with pytest.raises(SphynxError, match=r"`sphynx show no-such-design.json` ended with exit code 2"):
        rebuild_model("made", tmp_path, tmp_path / "models", told.append)
    assert told == ["sphynx show no-such-design.json"]


def test_modules_of_a_clone_are_looked_for_before_they_are_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_card(tmp_path / "models", "python -m reproduction.diagnosis teachers data -o runs")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="the chain runs reproduction, which is not installed"):
        rebuild_model("made", tmp_path, tmp_path / "models")


@pytest.mark.parametrize("name", [name for name in model_names() if chain_of(load_card(name)) is None])
def test_a_card_without_a_chain_says_what_is_not_known(name: str) -> None:
    with pytest.raises(InputError, match="has no chain of commands") as refused:
        load_chain(name)
    assert "Its teacher was not kept" in str(refused.value) or "commit" in str(refused.value)
