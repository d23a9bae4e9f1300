"""Labels that count in a network's order, by the names of the classes; other classes are refused."""

from pathlib import Path

import pytest
import torch

from sphynx.data.class_order import ordered_as
from sphynx.data.images import ImageSet
from sphynx.data.open import open_data
from sphynx.data.streamed import open_stream
from sphynx.errors import InputError
from tests.data.layouts import write_classes

LABELS = torch.tensor([0, 1, 2, 2])


def images(*names: str) -> ImageSet:
    return ImageSet(torch.zeros(4, 1, 2, 2, dtype=torch.uint8), LABELS, names)


def test_the_same_classes_in_another_order_are_numbered_anew() -> None:
    found = ordered_as(images("cat", "dog", "owl"), ("owl", "cat", "dog"))
    assert found.labels.tolist() == [1, 2, 0, 0] and found.class_names == ("owl", "cat", "dog")
    again = ordered_as(found, ("owl", "cat", "dog"))
    assert again is found
    numbers = ordered_as(images("0", "10", "2"), ("0", "2", "10"))  # folders are sorted as text
    assert numbers.labels.tolist() == [0, 2, 1, 1]


@pytest.mark.parametrize(
    ("given", "known"),
    [
        (("cat", "dog", "owl"), ()),
        (("cat", "dog", "owl"), ("0", "1", "2")),
        (("0", "1", "2"), ("cat", "dog", "owl")),
        (("n01443537", "n01629819", "n01641577"), ("goldfish", "salamander", "bullfrog")),
        (("goldfish", "salamander", "bullfrog"), ("n01443537", "n01629819", "n01641577")),
        (("cat", "dog", "owl"), ("cat", "dog")),  # refused by whoever counts them
    ],
)
def test_names_that_are_unknown_on_one_side_say_nothing(given: tuple[str, ...], known: tuple[str, ...]) -> None:
    asked = images(*given)
    assert ordered_as(asked, known) is asked


@pytest.mark.parametrize(
    ("given", "known", "what"),
    [
        (("cat", "dog", "zebra"), ("cat", "dog", "owl"), "class 2 is 'zebra' here and 'owl' in the network"),
        (("ant", "bee", "cat"), ("cat", "dog", "owl"), "does not know 'ant', 'bee'"),
        (("n01443537", "n01629819", "n01641577"), ("n01443537", "n01629819", "n01641578"), "class 2 is 'n01641577'"),
    ],
)
def test_other_classes_are_refused(given: tuple[str, ...], known: tuple[str, ...], what: str) -> None:
    with pytest.raises(InputError, match=what) as refused:
        ordered_as(images(*given), known, where="photos")
    assert refused.value.where == "photos" and "rename" in refused.value.remedy


def test_streamed_images_too(tmp_path: Path) -> None:
    for split in ("train", "val"):
        write_classes(tmp_path / split)
    streamed = ordered_as(open_stream(tmp_path, 4).train, ("bee", "ant"))
    assert streamed.labels.tolist() == [1] * 5 + [0] * 5
    digits = open_data("digits")
    assert ordered_as(digits.test, digits.train.class_names) is digits.test
