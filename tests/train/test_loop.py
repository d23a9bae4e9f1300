"""The loop: it learns; interrupted and resumed it equals itself; what goes wrong leaves the last good checkpoint."""

import dataclasses
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import torch
from safetensors.torch import load_file

from sphynx.data.images import Data
from sphynx.errors import InputError, InterruptedWorkError, SphynxError
from sphynx.network.trained import load_model
from sphynx.run.folder import RunFolder
from sphynx.run.interrupt import Interrupt
from sphynx.train import loop
from sphynx.train.loop import train
from sphynx.train.runs import train_unless_finished
from tests.train.small import DESIGN, data, job


class InterruptAfter(Interrupt):
    """As if Ctrl-C came while step number `asked` ran."""

    asked = 10**9

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    @property
    def requested(self) -> bool:
        self.count += 1
        return self.count >= InterruptAfter.asked

    @requested.setter
    def requested(self, value: bool) -> None:
        pass


def test_it_learns_and_leaves_a_complete_folder(tmp_path: Path) -> None:
    result = train(job(tmp_path, epochs=8, drop_path=0.0, held_out=0.25, learning_rate=0.1))
    assert result.accuracy >= 0.9
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {
        "config.json",
        "environment.json",
        "normalisation.json",
        "design.json",
        "metrics.jsonl",
        "checkpoint.pt",
        "model.safetensors",
        "result.json",
        "figures",
    }
    figure = ElementTree.fromstring((tmp_path / "figures" / "training.svg").read_text())
    said = {"".join(text.itertext()) for text in figure.iter("{http://www.w3.org/2000/svg}text")}
    assert {"training loss", "accuracy, %", "held-out images", "epoch"} <= said
    rows = RunFolder(tmp_path).read_metrics()
    assert [row["epoch"] for row in rows] == list(range(1, 9)) and rows[-1]["held_out_accuracy"] > 0.5
    assert rows[-1]["loss"] < rows[0]["loss"]
    assert load_model(tmp_path).design == DESIGN
    assert not any(name.startswith("auxiliary") for name in load_file(tmp_path / "model.safetensors"))


@pytest.mark.parametrize(
    ("asked", "ema", "optimizer"),
    [(1, 0.0, "sgd"), (4, 0.0, "sgd"), (7, 0.0, "sgd"), (10, 0.0, "sgd"), (6, 0.9, "sgd"), (6, 0.9, "muon")],
)
def test_interrupted_and_resumed_equals_uninterrupted(
    asked: int, ema: float, optimizer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four batches an epoch and drop-path: stops inside and at the end of epochs, twice in a row."""
    whole = train(job(tmp_path / "whole", mixup=0.3, cutout=1, crop=True, ema=ema, optimizer=optimizer))
    monkeypatch.setattr(loop, "Interrupt", InterruptAfter)
    monkeypatch.setattr(InterruptAfter, "asked", asked)
    broken = job(tmp_path / "broken", mixup=0.3, cutout=1, crop=True, ema=ema, optimizer=optimizer, resume=True)
    stops = 0
    while True:
        try:
            resumed = train(broken)
            break
        except InterruptedWorkError as error:
            assert "resume=True" in error.remedy
            stops += 1
            torch.manual_seed(stops)  # another process would have another random state
    assert stops >= 1
    assert (resumed.accuracy, resumed.test_loss) == (whole.accuracy, whole.test_loss)
    ours, theirs = (load_file(tmp_path / name / "model.safetensors") for name in ("broken", "whole"))
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    rows = [
        [{k: v for k, v in row.items() if k != "seconds"} for row in RunFolder(tmp_path / name).read_metrics()]
        for name in ("broken", "whole")
    ]
    assert rows[0] == rows[1]


def test_seeds_differ_and_repeat(tmp_path: Path) -> None:
    first, again, other = (
        train(job(tmp_path / name, seed=seed, epochs=1)) for name, seed in (("a", 0), ("b", 0), ("c", 1))
    )
    assert first.test_loss == again.test_loss != other.test_loss


def test_a_loss_that_is_not_finite_names_its_step_and_keeps_the_last_good_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rate(*place: Any) -> float:
        epoch, batch = place[1], place[2]
        return 1e38 if (epoch, batch) >= (1, 2) else 0.01

    monkeypatch.setattr(loop, "learning_rate", rate)
    with pytest.raises(SphynxError, match=r"epoch 2, step 4: the loss or its gradient is not a finite") as caught:
        train(job(tmp_path))
    assert "The last checkpoint is kept" in caught.value.remedy
    state = RunFolder(tmp_path, belongs_to=job(tmp_path).belongs_to()).load_checkpoint()
    assert state is not None and state["batches"]["epoch"] == 1
    assert all(bool(torch.isfinite(t).all()) for t in state["network"].values())
    assert not (tmp_path / "result.json").exists()


def test_a_checkpoint_of_another_design_or_recipe_is_refused(tmp_path: Path) -> None:
    train(job(tmp_path, epochs=1))
    wider = dataclasses.replace(DESIGN, channels=3)
    for other in (job(tmp_path, epochs=1, design=wider), job(tmp_path, epochs=2), job(tmp_path, epochs=1, seed=1)):
        with pytest.raises(InputError, match="belongs to another design or other settings"):
            train(dataclasses.replace(other, resume=True))
    renamed = dataclasses.replace(DESIGN, name="the same by another name")
    assert train(job(tmp_path, epochs=1, design=renamed, resume=True)).epochs == 1


def test_data_that_changed_since_a_checkpoint_are_refused(tmp_path: Path) -> None:
    """As many images of the same mean: a picture moved to another class, classes renamed, other pixels."""
    train(job(tmp_path, epochs=1))
    same = job(tmp_path, epochs=1, resume=True)
    assert isinstance(same.data, Data)
    images = same.data.train
    swapped = images.labels.clone()
    swapped[:2] = images.labels[:2].flip(0)
    changes = (
        dataclasses.replace(images, labels=swapped),
        dataclasses.replace(images, class_names=("left", "right", "middle")),
        dataclasses.replace(images, images=images.images.flip(3)),
    )
    for changed in changes:
        other = dataclasses.replace(same, data=dataclasses.replace(same.data, train=changed))
        assert other.identity() == same.identity()
        for again in (train, train_unless_finished):
            with pytest.raises(InputError, match="differ from those that the run was started with"):
                again(other)
    assert train_unless_finished(same).epochs == 1


def test_one_image_is_too_little_to_learn_from(tmp_path: Path) -> None:
    few = job(tmp_path, epochs=1, held_out=0.9)
    assert isinstance(few.data, Data)
    three = dataclasses.replace(few.data, train=few.data.train.subset(torch.arange(3)))
    with pytest.raises(InputError, match="1 training image is left") as refused:
        train(dataclasses.replace(few, data=three))
    assert "`held_out`" in refused.value.remedy


def test_a_share_that_holds_out_no_image_is_refused_before_training_where_a_temperature_needs_some(
    tmp_path: Path,
) -> None:
    with pytest.raises(InputError, match="none is held out"):
        train(job(tmp_path, epochs=1, held_out=0.001, calibrate=True))


def test_a_design_for_other_images_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"stripes: the design is for 1x4x4 images of 4 classes"):
        train(job(tmp_path, design=dataclasses.replace(DESIGN, classes=4)))


def test_weights_of_another_design_are_refused(tmp_path: Path) -> None:
    train(job(tmp_path, epochs=1))
    dataclasses.replace(DESIGN, channels=3).save(tmp_path / "design.json")
    with pytest.raises(InputError, match=r"model\.safetensors: the weights do not belong to the design"):
        load_model(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"short")
    with pytest.raises(InputError, match="cannot be read"):
        load_model(tmp_path)


def test_test_accuracy_of_every_epoch_is_recorded_and_changes_nothing(tmp_path: Path) -> None:
    plain = train(job(tmp_path / "plain"))
    watched = train(job(tmp_path / "watched", test_each_epoch=True))
    rows = RunFolder(tmp_path / "watched").read_metrics()
    tested = [row["test_accuracy"] for row in rows]
    assert len(tested) == watched.epochs and tested[-1] == watched.accuracy
    assert watched.best_test_accuracy == max(tested)
    assert (plain.accuracy, plain.test_loss, plain.best_test_accuracy) == (watched.accuracy, watched.test_loss, None)


def test_weights_trained_in_bf16_are_also_evaluated_in_it(tmp_path: Path) -> None:
    """Torch's own autocast around the saved network says the same; in fp32 on a CPU there is nothing to compare."""
    plain, trained = train(job(tmp_path / "plain")), train(job(tmp_path / "half", precision="bf16"))
    network, images = load_model(tmp_path / "half").eval(), data().test
    mean, std = (torch.tensor(values)[:, None, None] for values in (data().mean, data().std))
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        hits = network((images.images / 255 - mean) / std).argmax(1) == images.labels
    assert trained.bf16_accuracy == pytest.approx(hits.float().mean().item()) and plain.bf16_accuracy is None
