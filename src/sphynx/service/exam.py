"""A whole set of images asked privately, every answer held against the integer oracle."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sphynx.program.backends import Backend
from sphynx.service.client import Client

BUNDLES_AT_ONCE = 4  # a garbled bundle of a large network takes a hundred megabytes


@dataclass(frozen=True)
class Exam:
    backend: Backend
    images: int
    equal_to_oracle: int  # images whose private logits are the oracle's, bit for bit
    correct: int | None  # None where the images' classes are not known
    offline_s: float  # medians per image
    online_s: float
    online_bytes: int

    @property
    def accuracy(self) -> float | None:
        return None if self.correct is None else self.correct / self.images

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "accuracy": self.accuracy}


def examine(
    client: Client,
    backend: Backend,
    images: NDArray[np.uint8],
    labels: NDArray[np.int64] | None,
    expected: NDArray[np.int64],
    done: Callable[[int], None] = lambda _number: None,
) -> Exam:
    """`expected` are the oracle's integers of all outputs, and `labels` the classes of the images."""
    answers = []
    for start in range(0, len(images), BUNDLES_AT_ONCE):
        part = images[start : start + BUNDLES_AT_ONCE]
        client.prepare(len(part), backend=backend)
        answers += [client.infer(pixels) for pixels in part]
        done(len(answers))
    return Exam(
        backend,
        len(images),
        equal_to_oracle=sum(
            bool(np.array_equal(a.integers, integers)) for a, integers in zip(answers, expected, strict=True)
        ),
        correct=None
        if labels is None
        else sum(int(a.integer_logits.argmax()) == int(label) for a, label in zip(answers, labels, strict=True)),
        offline_s=statistics.median(a.offline_seconds for a in answers),
        online_s=statistics.median(a.online_seconds for a in answers),
        online_bytes=answers[0].online_bytes,
    )
