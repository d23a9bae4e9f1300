"""Whole runs: several seeds with their spread, automatic and given teachers."""

import dataclasses
import json
import statistics
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from sphynx.data.images import Data
from sphynx.errors import InputError
from sphynx.network.build import build_network, with_class_order
from sphynx.network.trained import load_model, load_trained
from sphynx.space.design import Design
from sphynx.space.published_cells import SPHYNX
from sphynx.space.reference import ResNet18Design, Vgg11Design
from sphynx.space.tally import Shape
from sphynx.train.job import Job
from sphynx.train.loop import train
from sphynx.train.results import TrainResult, TrainSummary
from sphynx.train.runs import as_teacher, teacher_design, teacher_for, train_seeds, train_unless_finished
from tests.train.small import DESIGN, job


def test_seeds_give_mean_and_spread_and_resume_skips_the_finished(tmp_path: Path) -> None:
    summary = train_seeds(job(tmp_path, epochs=1, seed=5), seeds=2)
    assert summary.seeds == (5, 6) and summary.accuracy_std == statistics.stdev(summary.accuracies)
    assert summary.accuracy == pytest.approx(sum(summary.accuracies) / 2)
    before = (tmp_path / "seed-5" / "model.safetensors").stat().st_mtime_ns
    again = train_seeds(job(tmp_path, epochs=1, seed=5, resume=True), seeds=3)
    assert again.runs[:2] == summary.runs and len(again.runs) == 3
    assert (tmp_path / "seed-5" / "model.safetensors").stat().st_mtime_ns == before


def test_one_seed_has_no_spread(tmp_path: Path) -> None:
    alone = train_seeds(job(tmp_path, epochs=1))
    assert alone.accuracy_std is None and alone.accuracies == (alone.runs[0].accuracy,)


def test_results_are_read_as_they_were_written(tmp_path: Path) -> None:
    summary = train_seeds(job(tmp_path, epochs=1), seeds=2)
    kept = json.loads((tmp_path / "result.json").read_text())
    assert TrainSummary.from_json(kept) == summary and kept == summary.to_json()
    assert kept["accuracies"] == [run["accuracy"] for run in kept["runs"]]
    one = json.loads((tmp_path / "seed-1" / "result.json").read_text())
    assert TrainResult.from_json(one) == summary.runs[1] and one == kept["runs"][1]


def test_the_automatic_teacher_is_the_same_cells_with_inner_relus(tmp_path: Path) -> None:
    start = job(tmp_path, epochs=2, distillation="squared", distillation_weight=0.1)
    teacher = teacher_for("auto", start)
    assert isinstance(teacher.design, Design) and teacher.design.inner_relus and not teacher.training
    assert dataclasses.replace(teacher.design, inner_relus=False, name=DESIGN.name) == DESIGN
    distilled = train(start.taught_by(teacher))
    plain = train(job(tmp_path / "plain", epochs=2))
    assert distilled.test_loss != plain.test_loss
    before = load_file(tmp_path / "teacher" / "model.safetensors")
    resumed = teacher_for("auto", dataclasses.replace(start, resume=True))  # trained already
    assert all((resumed.state_dict()[name] == value).all() for name, value in before.items())


def test_a_run_goes_on_with_the_teacher_that_it_began_with(tmp_path: Path) -> None:
    """Only the weights tell which of two networks of one design taught; a finished run is checked as well."""
    torch.manual_seed(1)
    first, second = (build_network(teacher_design(DESIGN)).eval() for _ in range(2))
    start = job(tmp_path, epochs=1, distillation="squared", distillation_weight=0.1)
    trained = train(start.taught_by(first))
    again = dataclasses.replace(start, resume=True)
    for go_on in (train, train_unless_finished):
        with pytest.raises(InputError, match="the teacher is not the one that the run was started with"):
            go_on(again.taught_by(second))
        assert go_on(again.taught_by(first)).test_loss == trained.test_loss

    config = json.loads((tmp_path / "config.json").read_text())
    del config["teacher_weights"]  # as runs of earlier versions have it
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert train(again.taught_by(first)).test_loss == trained.test_loss


def renamed(start: Job, names: tuple[str, ...]) -> Job:
    data = start.data
    assert isinstance(data, Data)
    trained, tested = (dataclasses.replace(images, class_names=names) for images in (data.train, data.test))
    return dataclasses.replace(start, data=dataclasses.replace(data, train=trained, test=tested))


def test_a_teacher_of_the_same_classes_in_another_order_teaches_each_class_by_its_name(tmp_path: Path) -> None:
    train(renamed(job(tmp_path / "t", epochs=1), ("right", "left", "middle")))
    student = job(tmp_path / "s", epochs=1, distillation="squared")  # its classes are left, middle, right
    teacher = teacher_for(str(tmp_path / "t"), student)
    x = torch.randn(5, 1, 4, 4)
    as_trained = load_model(tmp_path / "t")
    torch.testing.assert_close(teacher(x), as_trained(x)[:, [1, 2, 0]])
    given = load_trained(tmp_path / "t")
    assert torch.equal(as_teacher(given, student.data)(x), teacher(x))
    assert torch.equal(given.module(x), as_trained(x))  # the caller's own is left as it is


def test_a_teacher_of_other_classes_is_refused(tmp_path: Path) -> None:
    train(renamed(job(tmp_path / "t", epochs=1), ("cat", "dog", "owl")))
    with pytest.raises(InputError, match="not the teacher's: class 0 is 'left' here and 'cat' in the teacher"):
        teacher_for(str(tmp_path / "t"), job(tmp_path / "s"))


def test_logits_of_every_kind_of_network_can_be_reordered() -> None:
    image = Shape(3, 32, 32)
    cells = Design(SPHYNX, 2, 3, (0, 1), image, 4)
    for design in (ResNet18Design(2, image, 4), Vgg11Design(2, image, 4, hidden=5), cells):
        network = build_network(design, auxiliary=design is cells).eval()
        x = torch.randn(2, 3, 32, 32)
        torch.testing.assert_close(with_class_order(network, (2, 0, 3, 1))(x), network(x)[:, [2, 0, 3, 1]])


def test_a_given_teacher_must_fit_the_data(tmp_path: Path) -> None:
    train(job(tmp_path / "t", epochs=1))
    assert teacher_for(str(tmp_path / "t"), job(tmp_path / "s")).design == DESIGN
    dataclasses.replace(DESIGN, classes=4).save(tmp_path / "t" / "design.json")
    with pytest.raises(InputError):
        load_model(tmp_path / "t")
    with pytest.raises(InputError, match="automatic teacher needs"):
        teacher_design(dataclasses.replace(DESIGN, inner_relus=True))
