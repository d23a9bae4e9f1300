"""Views: a teacher's logits computed once equal those of a teacher that runs in every step; files that are refused."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from sphynx.data.images import Data
from sphynx.errors import InputError
from sphynx.network.build import build_network
from sphynx.run.folder import RunFolder
from sphynx.space.reference import ResNet18Design
from sphynx.space.stream import Stage, StreamDesign
from sphynx.space.tally import Shape
from sphynx.train.job import Job
from sphynx.train.loop import make_batches, open_views, train
from sphynx.train.runs import train_seeds
from tests.train.small import job

STUDENT = StreamDesign((Stage(6, (3,)), Stage(8, (4,))), Shape(1, 4, 4), 3, name="student")
VIEWED: dict[str, Any] = {
    "distillation": "kl",
    "mixup": 1.0,
    "cutmix": 0.5,
    "trivial_augment": True,
    "crop": True,
    "view_epochs": 2,
    "drop_path": 0.0,
    "auxiliary_weight": 0.0,
    "norm_batches": 2,
    "ema": 0.9,
    "decay_on": "kernels",
}


def teacher(seed: int = 5) -> Any:
    torch.manual_seed(seed)
    return build_network(ResNet18Design(2, Shape(1, 4, 4), 3, "small", "average"))


def viewed(out: Path, **changes: Any) -> Job:
    return job(out, **{"design": STUDENT, "teacher": teacher(), **VIEWED, **changes})


def test_kept_logits_are_the_teachers_of_the_very_batches(tmp_path: Path) -> None:
    work = viewed(tmp_path)
    views = open_views(work, work.data.train)
    batches, network = make_batches(work.data.train, work), teacher().eval()
    for epoch in range(4):  # the views of two epochs, twice
        for number, (x, _) in enumerate(batches):
            with torch.no_grad():
                torch.testing.assert_close(views.of(epoch, number).float(), network(x), rtol=2e-3, atol=2e-3)
    again = open_views(dataclasses.replace(work, teacher=None), work.data.train)
    assert torch.equal(again.logits, views.logits)


def test_students_share_one_file_and_need_no_teacher_for_it(tmp_path: Path) -> None:
    summary = train_seeds(viewed(tmp_path / "two"), 2)
    assert len(summary.runs) == 2 and (tmp_path / "two" / "views.safetensors").is_file()
    assert not list((tmp_path / "two").glob("seed-*/views*"))
    untaught = viewed(tmp_path / "third", teacher=None, views=tmp_path / "two" / "views.safetensors")
    train(untaught)
    config = RunFolder(tmp_path / "third").read_json("config.json")
    assert config["teacher"]["format"] == "sphynx-resnet18/1"
    ours, theirs = (
        load_file(tmp_path / name / "model.safetensors") for name in ("third", "two/seed-0")
    )  # the same seed: with or without the teacher at hand, the same training
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"mixup": 0.5}, "other images"),
        ({"batch_size": 8}, "other images"),
        ({"view_epochs": 3}, "other images"),
        ({"teacher": teacher(6)}, "another teacher"),
    ],
)
def test_views_of_something_else_are_refused(change: dict[str, Any], what: str, tmp_path: Path) -> None:
    work = viewed(tmp_path)
    open_views(work, work.data.train)
    other = viewed(tmp_path, **change)
    with pytest.raises(InputError, match=what):
        open_views(other, other.data.train)


def test_views_of_the_same_images_in_another_order_are_refused(tmp_path: Path) -> None:
    """As a class folder that was renamed brings it about."""
    work = viewed(tmp_path)
    open_views(work, work.data.train)
    assert isinstance(work.data, Data)
    turned = work.data.train.subset(torch.arange(len(work.data.train)).flip(0))
    other = dataclasses.replace(work, data=dataclasses.replace(work.data, train=turned))
    assert other.data.identity() == work.data.identity()
    with pytest.raises(InputError, match="other images"):
        open_views(other, turned)


def test_a_run_goes_on_with_the_views_of_its_own_teacher(tmp_path: Path) -> None:
    """The files hold views of the same images, and no teacher is given that would tell them apart."""
    for seed in (5, 6):
        work = viewed(tmp_path / "views", teacher=teacher(seed), views=tmp_path / f"{seed}.safetensors")
        open_views(work, work.data.train)
    begun = viewed(tmp_path / "run", teacher=None, views=tmp_path / "5.safetensors")
    train(begun)
    with pytest.raises(InputError, match="the teacher is not the one"):
        train(dataclasses.replace(begun, resume=True, views=tmp_path / "6.safetensors"))


def test_no_file_and_no_teacher(tmp_path: Path) -> None:
    work = viewed(tmp_path, teacher=None)
    with pytest.raises(InputError, match="no teacher to make it"):
        open_views(work, work.data.train)
