"""The moving average of the weights against its formula, step by step; what a run with it leaves behind."""

import copy
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from sphynx.network.trained import load_model
from sphynx.run.folder import RunFolder
from sphynx.train.evaluate import evaluate
from sphynx.train.loop import make_batches, prepare_training, train
from tests.train.small import job


def test_it_follows_its_formula_for_weights_and_statistics_alike(tmp_path: Path) -> None:
    work = job(tmp_path, ema=0.7)
    network, step = prepare_training(work)
    network.train()
    assert step.average is not None
    expected = copy.deepcopy(network.state_dict())
    decays = []
    for number, (x, y) in enumerate(make_batches(work.data.train, work), start=1):
        step(x, y)
        decays.append(min(0.7, (1 + number) / (10 + number)))
        for name, value in network.state_dict().items():
            expected[name] = (
                decays[-1] * expected[name] + (1 - decays[-1]) * value if value.is_floating_point() else value.clone()
            )
    assert decays[0] < 0.7  # it forgets the random start faster
    averaged = step.average.network.state_dict()
    assert averaged.keys() == expected.keys()
    for name, value in averaged.items():
        torch.testing.assert_close(value, expected[name], msg=name)
    assert any("running_var" in name for name in averaged)
    assert not any(p.requires_grad for p in step.average.network.parameters()) and not step.average.network.training


def test_the_average_does_not_change_what_is_trained(tmp_path: Path) -> None:
    ends = []
    for ema in (0.0, 0.9):
        work = job(tmp_path, ema=ema)
        network, step = prepare_training(work)
        network.train()
        torch.manual_seed(0)
        for x, y in make_batches(work.data.train, work):
            step(x, y)
        ends.append(network.state_dict())
    assert all(
        torch.equal(plain, with_average) for plain, with_average in zip(*(e.values() for e in ends), strict=True)
    )


def test_the_average_is_what_a_run_evaluates_and_saves(tmp_path: Path) -> None:
    work = job(tmp_path, ema=0.8, held_out=0.25, learning_rate=0.1)
    result = train(work)
    state = RunFolder(tmp_path, belongs_to=work.belongs_to()).load_checkpoint()
    assert state is not None
    averaged, last = state["step"]["average"]["network"], state["network"]
    saved = load_file(tmp_path / "model.safetensors")
    assert all(torch.equal(saved[name], averaged[name]) for name in saved)
    assert any(not torch.equal(saved[name], last[name]) for name in saved)
    data = work.data
    again = evaluate(load_model(tmp_path), data.test, data.mean, data.std)
    assert again.accuracy == result.accuracy and again.loss == pytest.approx(result.test_loss)
    _, held_out = data.train.split(0.25, 0)
    shown = RunFolder(tmp_path).read_metrics()[-1]["held_out_accuracy"]
    assert evaluate(load_model(tmp_path), held_out, data.mean, data.std).accuracy == shown
