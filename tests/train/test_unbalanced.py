"""Small data with classes of unequal size: weights, several teachers, a temperature from images held out by patient."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

from sphynx.data.images import ImageSet, make_data
from sphynx.errors import InputError
from sphynx.network.build import build_network, divide_logits
from sphynx.network.ensemble import Ensemble
from sphynx.network.trained import load_model
from sphynx.train.evaluate import Answers, evaluate
from sphynx.train.job import CONFIG
from sphynx.train.loop import HELD_OUT_SEED, make_batches, prepare_training, temperature_of, train
from sphynx.train.objective import Objective, distillation_loss, weights_of_classes
from sphynx.train.results import TrainResult
from sphynx.zoo.teachers import add_teacher
from tests.train.small import DESIGN, data, job, recipe, stripes


def patients() -> ImageSet:
    images = stripes(60, 0)
    return dataclasses.replace(images, groups=torch.arange(60) // 6)


def test_weights_make_classes_count_alike() -> None:
    labels = torch.tensor([0] * 6 + [1] * 3 + [2])
    weights = weights_of_classes(labels, 4)
    torch.testing.assert_close(weights, torch.tensor([10 / 24, 10 / 12, 10 / 4, 0.0]))
    logits = torch.randn(10, 4)
    network = torch.nn.Identity()
    loss, _ = Objective(network, recipe(auxiliary_weight=0.0), None, weights)(logits, labels)
    alone = [functional.cross_entropy(logits[labels == kind], labels[labels == kind]) for kind in range(3)]
    torch.testing.assert_close(loss, torch.stack(alone).mean())


def test_sampling_and_weights_train(tmp_path: Path) -> None:
    rare = stripes(60, 0)
    rare = rare.subset(torch.cat([torch.arange(0, 60, 3), torch.tensor([1, 2, 4, 5])]))
    opened = make_data("rare", rare, stripes(30, 1), where="rare")
    for balance in ("sampling", "weights"):
        work = job(tmp_path / balance, data=opened, balance=balance, rotate=5.0, contrast=0.1, epochs=1)
        result = train(work)
        assert result.balanced_accuracy is not None and result.mcc is not None
        counts = torch.zeros(3)
        for _, labels in make_batches(opened.train, work):
            counts += torch.bincount(labels, minlength=3)
        assert bool((counts >= 7).all()) == (balance == "sampling")


def test_several_teachers_teach_by_the_mean_of_their_logits(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    for seed, folder in enumerate(folders):
        train(job(folder, epochs=1, seed=seed))
    work = job(tmp_path / "student", epochs=1, distillation="kl")
    both = add_teacher(work, ",".join(map(str, folders)))
    assert isinstance(both.teacher, Ensemble)
    _, step = prepare_training(both)
    x, y = next(iter(make_batches(data().train, both)))
    mean = torch.stack([load_model(folder).eval()(x) for folder in folders]).mean(0)
    objective = Objective(torch.nn.Identity(), recipe(distillation="kl", label_weight=0.0), both.teacher)
    objective.network = load_model(folders[0])
    loss, logits = objective(x, y)
    torch.testing.assert_close(loss, distillation_loss(logits, mean, objective.recipe))
    train(both)
    config = json.loads((tmp_path / "student" / CONFIG).read_text())
    assert config["teachers"] == 2
    with pytest.raises(InputError, match="teacher is not the one"):
        train(dataclasses.replace(add_teacher(work, folders[0]), resume=True))
    assert step.steps == 0


def test_a_temperature_comes_from_patients_that_are_held_out(tmp_path: Path) -> None:
    opened = make_data("patients", patients(), stripes(30, 1), where="patients")
    rest, held_out = opened.train.split(0.2, HELD_OUT_SEED)
    assert rest.groups is not None and held_out.groups is not None
    assert not set(rest.groups.tolist()) & set(held_out.groups.tolist())
    result = train(job(tmp_path, data=opened, epochs=2, held_out=0.2, calibrate=True))
    assert result.temperature is not None
    network = load_model(tmp_path)
    assert temperature_of(network, held_out, opened.mean, opened.std) == pytest.approx(1.0, rel=1e-3)
    assert TrainResult.from_json(result.to_json()) == result


def test_dividing_logits_is_all_that_a_temperature_does() -> None:
    network = build_network(DESIGN).eval()
    answers = [Answers(), Answers()]
    opened = data()
    evaluate(network, opened.test, opened.mean, opened.std, answers[0].add)
    divide_logits(network, 2.5)
    evaluate(network, opened.test, opened.mean, opened.std, answers[1].add)
    np.testing.assert_allclose(answers[0].arrays[0], 2.5 * answers[1].arrays[0], rtol=1e-4, atol=1e-6)


def test_a_temperature_needs_held_out_images() -> None:
    with pytest.raises(InputError, match="held_out is 0"):
        recipe(calibrate=True)
