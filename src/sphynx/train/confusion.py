"""Which classes are mistaken for which: counts over an evaluation, and every class's accuracy, the worst first.

confusion = Confusion(images.class_names)
evaluate(network, images, mean, std, seen=confusion.see)
confusion.classes()
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class ClassScore:
    name: str
    images: int
    accuracy: float | None  # None: no image is of this class
    taken_for: str  # the most frequent wrong answer; empty: there was none
    times: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class Confusion:
    def __init__(self, class_names: Sequence[str]) -> None:
        self._names = tuple(class_names)
        self._counts = torch.zeros(len(self._names), len(self._names), dtype=torch.int64)  # [class, answer]

    def see(self, logits: Tensor, labels: Tensor) -> None:
        """The highest logit is the answer."""
        self.add(logits.argmax(1), labels)

    def add(self, answers: Tensor, labels: Tensor) -> None:
        size = len(self._names)
        pairs = labels.cpu() * size + answers.cpu()
        self._counts += torch.bincount(pairs, minlength=size * size).view(size, size)

    @property
    def counts(self) -> tuple[tuple[int, ...], ...]:
        """[class][answer]"""
        return tuple(map(tuple, self._counts.tolist()))

    def classes(self) -> list[ClassScore]:
        """Worst first, those with more images before others; classes without images last."""
        scores = [self._score(label) for label in range(len(self._names))]
        return sorted(scores, key=lambda one: (one.accuracy is None, one.accuracy or 0.0, -one.images))

    def _score(self, label: int) -> ClassScore:
        answers = self._counts[label].tolist()
        images, right = sum(answers), answers[label]
        answers[label] = 0
        times = max(answers)
        return ClassScore(
            self._names[label],
            images,
            right / images if images else None,
            self._names[answers.index(times)] if times else "",
            times,
        )
