"""A network that is not for the data: the refusal names a command that makes one, or asks for other data."""

import shlex

import pytest
import torch

from sphynx.data.images import Data, ImageSet, make_data
from sphynx.errors import InputError
from sphynx.network.fit import require_fit
from sphynx.space.design import Design
from sphynx.space.files import AnyDesign
from sphynx.space.micro import MicroDesign
from sphynx.space.published_cells import PC_DARTS, SPHYNX
from sphynx.space.reference import ResNet18Design, Vgg11Design, WideResNetDesign
from sphynx.space.stream import Stage, StreamDesign
from sphynx.space.tally import Shape


def made_up(*shape: int, classes: int = 2) -> Data:
    labels = torch.arange(classes).repeat(2)
    pixels = torch.arange(labels.numel() * shape[0] * shape[1] * shape[2]).reshape(-1, *shape).to(torch.uint8)
    images = ImageSet(pixels, labels, tuple(f"class {number}" for number in range(classes)))
    return make_data("photos", images, images, where="photos")


@pytest.mark.parametrize(
    ("design", "verb"),
    [
        (Design(SPHYNX, 5, 5, (0, 1)), "plan --family cells --relu-budget BUDGET"),
        (ResNet18Design(64, Shape(3, 32, 32), 100, "small"), "show resnet18"),
        (Vgg11Design(8, Shape(3, 32, 32), 100), "show vgg11"),
        (WideResNetDesign(), "show wide-resnet"),
        (StreamDesign((Stage(8, (2,)),)), "plan --family stream --relu-budget BUDGET"),
    ],
)
def test_a_design_for_other_images_names_the_command_that_makes_one(design: AnyDesign, verb: str) -> None:
    require_fit(design, made_up(3, 32, 32, classes=100))
    with pytest.raises(
        InputError, match="photos: the design is for 3x32x32 images of 100 classes, the data has 1x8x8"
    ) as no:
        require_fit(design, made_up(1, 8, 8))
    command = no.value.remedy.partition(": ")[2].removesuffix(".")
    flags = "--image-size 8 --image-channels 1 --classes 2 -o design.json"
    assert shlex.split(command) == shlex.split(f"sphynx {verb} {flags}")


def test_images_that_are_not_square_want_a_size_first() -> None:
    with pytest.raises(InputError) as no:
        require_fit(Design(SPHYNX, 5, 5, (0, 1)), made_up(3, 40, 48))
    assert "`image_size=N`" in no.value.remedy


def test_a_network_without_a_verb_is_told_no_command() -> None:
    with pytest.raises(InputError) as no:
        require_fit(MicroDesign(PC_DARTS, 1, 4), made_up(1, 8, 8))
    assert "sphynx" not in no.value.remedy


def test_a_trained_network_wants_other_data_not_another_design() -> None:
    with pytest.raises(InputError, match="photos: the network is for") as no:
        require_fit(Design(SPHYNX, 5, 5, (0, 1)), made_up(3, 32, 32), trained=True)
    assert "design" not in no.value.remedy and "trained on" in no.value.remedy
