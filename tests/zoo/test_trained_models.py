"""Packed models: what was trained comes back within eight bits; cards say what the run wrote; shipped ones hold."""

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from tools.pack_model import MAX_BYTES, pack

from sphynx.data.source import DataSource
from sphynx.errors import InputError
from sphynx.network.build import AnyNetwork
from sphynx.network.observe import observe
from sphynx.network.stored import load_normalisation
from sphynx.network.trained import load_model, load_trained, save_model, trained_on
from sphynx.space.artifact import MODEL
from sphynx.train.loop import train
from sphynx.train.runs import teacher_for, train_seeds
from sphynx.zoo.shipped import SHIPPED, load_card, model_names, model_path
from tests.train.small import DESIGN, data, job


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Run folder of the second of two seeds, and the folder of models it was packed into as `stripes`."""
    out = tmp_path_factory.mktemp("runs")
    train_seeds(job(out, epochs=1), seeds=2)
    _record(out / "seed-1", command=["sphynx", "train", "design.json"])
    pack(out / "seed-1", "stripes", out / "models", makes="seed-1")
    return out / "seed-1", out / "models"


def _record(run: Path, **changes: Any) -> None:
    """Write another command or commit into a run's record."""
    file = run / "environment.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


def test_a_packed_model_is_the_trained_one_to_eight_bits(packed: tuple[Path, Path]) -> None:
    run, models = packed
    ours, theirs = load_trained(models / "stripes").module, load_model(run)
    assert not ours.training and ours.design == DESIGN
    for (name, mine), their in zip(ours.state_dict().items(), theirs.state_dict().values(), strict=True):
        assert mine.dtype == their.dtype, name
        if their.ndim > 1:
            off, largest = ((mine - their).flatten(1).abs().amax(1), their.flatten(1).abs().amax(1))
            assert bool((off <= 0.501 * largest / 127).all()), name
        else:
            assert torch.equal(mine, their), name
    assert load_normalisation(models / "stripes") == load_normalisation(run)
    assert (models / "stripes" / MODEL).stat().st_size < (run / MODEL).stat().st_size


def test_the_card_says_what_the_run_wrote(packed: tuple[Path, Path]) -> None:
    run, models = packed
    card = load_card("stripes", models)
    result, config = (json.loads((run / name).read_text()) for name in ("result.json", "config.json"))
    assert (card["accuracy"], card["seed"], card["recipe"]) == (result["accuracy"], 1, config["recipe"])
    assert card["all_seeds"]["seeds"] == [0, 1] and card["all_seeds"]["accuracies"][1] == result["accuracy"]
    assert card["relus"] == observe(load_trained(models / "stripes").module, DESIGN.image).relus
    assert card["parameters"] == result["parameters"]
    assert len(card["provenance"]["source_sha256"]) == 16 and card["evaluation"] is None
    assert card["terms"].startswith("not known")  # of stripes
    assert trained_on(models / "stripes") == trained_on(run) == DataSource("stripes")


def test_names_and_paths_lead_to_models(packed: tuple[Path, Path]) -> None:
    run, models = packed
    assert model_names(models) == ["stripes"]
    assert model_path("stripes", models) == models / "stripes"
    assert model_path(run, models) == run
    with pytest.raises(InputError, match="no model of that name") as caught:
        model_path("spots", models)
    assert "stripes" in caught.value.remedy


def test_a_packed_model_teaches(packed: tuple[Path, Path], tmp_path: Path) -> None:
    _, models = packed
    student = job(tmp_path, distillation="kl", label_weight=0.0, epochs=1)
    taught = student.taught_by(teacher_for(str(models / "stripes"), student))
    assert train(taught).epochs == 1


def test_packing_refuses(packed: tuple[Path, Path]) -> None:
    run, models = packed
    with pytest.raises(InputError, match="already exists"):
        pack(run, "stripes", models)
    with pytest.raises(InputError, match="is not a valid name"):
        pack(run, "../stripes", models)
    with pytest.raises(InputError, match=r"no trained model|cannot be read"):
        pack(run.parent, "both-seeds", models)  # a summary, not a run
    for commit, fault in ((None, "has no commit"), ("0123456789ab-dirty", "but of 0123456789ab-dirty")):
        _record(run, commit=commit)
        with pytest.raises(InputError, match=fault):
            pack(run, "unknown-code", models)
    _record(run, commit="0123456789ab")
    assert model_names(models) == ["stripes"]


@pytest.mark.parametrize("name", ["head.weight", "head.bias"])
def test_weights_that_are_not_finite_are_refused(name: str, packed: tuple[Path, Path], tmp_path: Path) -> None:
    network = load_model(packed[0])
    with torch.no_grad():
        network.get_parameter(name).view(-1)[0] = math.inf
    with pytest.raises(InputError, match=rf"{name} holds numbers that are not finite"):
        save_model(tmp_path, network, compact=True)


def test_what_is_refused_leaves_nothing_behind(
    packed: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.pack_model.MAX_BYTES", 10)
    with pytest.raises(InputError, match="more than 10"):
        pack(packed[0], "large", tmp_path, makes="large")
    assert list(tmp_path.iterdir()) == []


def head_of(network: AnyNetwork) -> torch.nn.Linear:
    assert isinstance(network.head, torch.nn.Linear)
    return network.head


def test_a_kernel_of_zeros_stays_one(packed: tuple[Path, Path], tmp_path: Path) -> None:
    network = load_model(packed[0])
    with torch.no_grad():
        head_of(network).weight[1] = 0
    save_model(tmp_path, network, compact=True)
    assert not head_of(load_model(tmp_path)).weight[1].any()


def test_bytes_without_their_scale_do_not_fit(packed: tuple[Path, Path], tmp_path: Path) -> None:
    shutil.copytree(packed[1] / "stripes", tmp_path, dirs_exist_ok=True)
    with safe_open(tmp_path / MODEL, framework="pt") as opened:
        metadata = opened.metadata()
        weights = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 - not a dict
    del weights["head.weight.scale"]
    save_file(weights, tmp_path / MODEL, metadata)
    with pytest.raises(InputError, match="the weights do not fit the design"):
        load_model(tmp_path)


@pytest.mark.parametrize("name", model_names())
def test_shipped_models_load_and_are_what_their_cards_say(name: str) -> None:
    card = load_card(name)
    network = load_trained(model_path(name)).module
    seen = observe(network, network.design.image)
    assert (seen.relus, seen.parameters) == (card["relus"], card["parameters"])
    assert (SHIPPED / name / MODEL).stat().st_size <= MAX_BYTES
    mean, std = load_normalisation(SHIPPED / name)
    assert len(mean) == len(std) == network.design.image.channels
    assert card["name"] == name and 0 < card["accuracy"] < 1
    with torch.no_grad():
        assert bool(network(torch.zeros(1, *network.design.image)).isfinite().all())


def test_data_is_what_the_fixture_trained_on(packed: tuple[Path, Path]) -> None:
    described = json.loads((packed[1] / "stripes" / "normalisation.json").read_text())
    assert tuple(described["class_names"]) == data().train.class_names
