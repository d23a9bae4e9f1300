"""Counts per class, against a count by hand and against the accuracy of all images."""

from torch import Tensor, nn, tensor

from sphynx.data.images import ImageSet
from sphynx.train.confusion import ClassScore, Confusion
from sphynx.train.evaluate import evaluate
from tests.train.small import data


def test_classes_are_counted_as_by_hand() -> None:
    confusion = Confusion(("ant", "bee", "cat", "dog"))
    confusion.add(answers=tensor([0, 0, 2, 1]), labels=tensor([0, 0, 0, 1]))
    confusion.add(answers=tensor([2, 1, 2, 2, 1]), labels=tensor([0, 2, 2, 2, 0]))
    assert confusion.classes() == [
        ClassScore("ant", 5, 2 / 5, "cat", 2),
        ClassScore("cat", 3, 2 / 3, "bee", 1),
        ClassScore("bee", 1, 1.0, "", 0),
        ClassScore("dog", 0, None, "", 0),
    ]


class Brightest(nn.Module):
    """Answers with the brightest of the first three columns, but never with the last of them."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(tensor([1.0, 1.0, 0.0]))

    def forward(self, x: Tensor) -> Tensor:
        return x.mean(dim=(1, 2))[:, :3] * self.weight - (1 - self.weight) * 1000


def test_an_evaluation_tells_every_answer() -> None:
    opened = data()
    images: ImageSet = opened.test
    confusion = Confusion(images.class_names)
    result = evaluate(Brightest(), images, opened.mean, opened.std, seen=confusion.see)
    classes = {one.name: one for one in confusion.classes()}
    assert classes["right"].accuracy == 0.0 and classes["right"].taken_for in ("left", "middle")
    assert classes["left"].accuracy == classes["middle"].accuracy == 1.0
    assert result.accuracy == 2 / 3 and sum(one.images for one in classes.values()) == len(images)
