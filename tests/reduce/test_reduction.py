"""The frame: a trained network in, a run folder within the budget out; interrupted ones go on; what is refused."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import torch

import sphynx
from sphynx.errors import InputError, InterruptedWorkError
from sphynx.network.trained import TrainedNetwork
from sphynx.reduce import learning, parabola
from sphynx.reduce.reduction import reduce_trained
from sphynx.reduce.results import ReduceResult
from sphynx.reduce.settings import ReduceSettings
from sphynx.run.interrupt import Interrupt
from sphynx.train.recipe import load_recipe
from tests.reduce.planted import ALL_RELUS, noisy_data, planted_network

RECIPE = load_recipe("distil-small", {"batch_size": 27, "epochs": 2})
BRIEF = ReduceSettings("channels", rounds=2, search_epochs=2)


def original() -> TrainedNetwork:
    data = noisy_data()
    return TrainedNetwork("planted", planted_network(), data.mean, data.std, data.train.class_names)


def reduced(out: Path, settings: ReduceSettings = BRIEF, budget: int = 100, **changes: Any) -> ReduceResult:
    return reduce_trained(original(), noisy_data(), budget, settings, RECIPE, out, **changes)


class Interrupting(Interrupt):
    """Is requested in the second step of every stage."""

    def __init__(self) -> None:
        self.read = 0

    @property
    def requested(self) -> bool:
        self.read += 1
        return self.read == 2

    @requested.setter
    def requested(self, value: bool) -> None:
        del value


def test_the_result_is_a_run_folder_within_the_budget(tmp_path: Path) -> None:
    result = reduced(tmp_path / "run")
    kept = sphynx.load_network(tmp_path / "run")
    assert kept.design.relus == result.best.counts.relus <= 100 < result.original_relus == ALL_RELUS
    assert kept.class_names == ("a", "b", "c") and kept.mean == noisy_data().mean
    written = json.loads((tmp_path / "run" / "reduction.json").read_text())
    assert ReduceResult.from_json(written) == result and written["best"] == "channels"
    assert sphynx.evaluate_network(kept, noisy_data()).accuracy == result.best.accuracy


def test_auto_keeps_the_better_of_two(tmp_path: Path) -> None:
    result = reduced(tmp_path / "run", dataclasses.replace(BRIEF, method="auto", rounds=1, search_epochs=0), 130)
    assert [one.method for one in result.tried] == ["stream", "channels"]
    assert all(one.counts.relus <= 130 and one.held_out_agreement is not None for one in result.tried)
    kept, best = (
        sphynx.load_network(tmp_path / "run"),
        sphynx.load_network(tmp_path / "run" / result.best.method / "run"),
    )
    assert kept.design == best.design
    assert all(torch.equal(kept.module.state_dict()[name], own) for name, own in best.module.state_dict().items())


def test_an_interrupted_reduction_goes_on_as_if_it_had_not_been(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = reduced(tmp_path / "whole")

    with monkeypatch.context() as patch:
        patch.setattr(learning, "Interrupt", Interrupting)
        with pytest.raises(InterruptedWorkError):
            reduced(tmp_path / "parts")
    resumed = reduced(tmp_path / "parts", resume=True)
    assert dataclasses.replace(resumed.best, minutes=0.0) == dataclasses.replace(whole.best, minutes=0.0)
    one, other = (sphynx.load_network(tmp_path / name).module.state_dict() for name in ("whole", "parts"))
    assert all(torch.equal(one[name], other[name]) for name in one)
    with pytest.raises(InputError, match="started with another"):
        reduced(tmp_path / "parts", budget=90, resume=True)


def test_squares_need_not_be_fitted_alike_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU, which does not always add in one order."""
    settings = dataclasses.replace(BRIEF, method="safenet")
    with monkeypatch.context() as patch:
        patch.setattr(learning, "Interrupt", Interrupting)
        with pytest.raises(InterruptedWorkError):
            reduced(tmp_path, settings)
    fit = parabola.fit_parabolas
    monkeypatch.setattr(parabola, "fit_parabolas", lambda z: fit(z) * (1 + 1e-6))
    assert reduced(tmp_path, settings, resume=True).best.method == "safenet"


def test_labels_change_nothing(tmp_path: Path) -> None:
    data = noisy_data()
    shuffled = dataclasses.replace(data, train=dataclasses.replace(data.train, labels=data.train.labels.flip(0)))
    settings = dataclasses.replace(BRIEF, rounds=1, search_epochs=0)
    for name, images in (("as they are", data), ("flipped", shuffled)):
        reduce_trained(original(), images, 100, settings, RECIPE, tmp_path / name)
    one, other = (sphynx.load_network(tmp_path / name) for name in ("as they are", "flipped"))
    assert one.design == other.design
    weights = other.module.state_dict()
    assert all(torch.equal(own, weights[name]) for name, own in one.module.state_dict().items())


def test_reductions_share_the_originals_logits(tmp_path: Path) -> None:
    """Two methods learn from one file of views, on the images that are not held out."""
    recipe, file = dataclasses.replace(RECIPE, view_epochs=2), tmp_path / "views.safetensors"
    made: list[bytes] = []
    for method in ("channels", "snl"):
        settings = dataclasses.replace(BRIEF, method=method, rounds=1, search_epochs=3)
        result = reduce_trained(original(), noisy_data(), 100, settings, recipe, tmp_path / method, views=file)
        assert result.best.held_out_agreement is not None
        assert not (tmp_path / method / "views.safetensors").exists()
        made.append(file.read_bytes())
    assert made[0] == made[1]


@pytest.mark.parametrize("budget", [0, ALL_RELUS, 10 * ALL_RELUS])
def test_a_budget_that_is_none_is_refused(tmp_path: Path, budget: int) -> None:
    with pytest.raises(InputError, match=f"below the network's {ALL_RELUS} ReLUs"):
        reduced(tmp_path / "run", budget=budget)


def test_a_reduced_network_is_reduced_again_by_stream_alone(tmp_path: Path) -> None:
    reduced(tmp_path / "once", dataclasses.replace(BRIEF, rounds=1, search_epochs=0), 140)
    once = sphynx.load_network(tmp_path / "once")
    brief = {"training.epochs": 1, "training.batch_size": 27, "search_epochs": 0}
    with pytest.raises(InputError, match="reduced network already"):
        sphynx.reduce_network(
            once, noisy_data(), relu_budget=48, out=tmp_path / "channels", method="channels", settings=brief
        )
    again = sphynx.reduce_network(
        once, noisy_data(), relu_budget=48, out=tmp_path / "stream", method="stream", settings=brief
    )
    assert again.best.counts.relus <= 48 < again.original_relus <= 140


def test_settings_that_cannot_work_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not distil"):
        sphynx.reduce_network(
            planted_network(),
            noisy_data(),
            relu_budget=10,
            out=tmp_path / "run",
            recipe="smoke",
            settings={"method": "stream"},
        )
    with pytest.raises(InputError, match="rounds must be at least 1"):
        sphynx.reduce_network(
            planted_network(), noisy_data(), relu_budget=10, out=tmp_path / "run", settings={"rounds": 0}
        )
