"""The answer that a client gets for its image: labels with probabilities, and what the answer cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sphynx.program.ir import Program


@dataclass(frozen=True, eq=False)
class Prediction:
    """A private answer: labels with probabilities, the likeliest first; logits in the order of `class_names`; costs.

    >>> compiled = sphynx.Compiled.load("compiled/digits")
    >>> [answer] = compiled.infer_privately(sphynx.open_data("digits").test.images[:1].numpy())
    >>> answer.label == answer.labels[0], answer.backend, answer.online_rounds > 0
    (True, 'gmw', True)
    >>> answer.class_names[answer.logits.argmax()] == answer.label
    True
    """

    labels: tuple[str, ...]  # the likeliest first
    probabilities: tuple[float, ...]  # of the labels, in their order
    class_names: tuple[str, ...]  # in the program's order, which does not depend on the image
    logits: NDArray[np.float64]  # of the classes, in that order
    integer_logits: NDArray[np.int64]  # the same in the program's fixed point: equal to the oracle's, bit for bit
    backend: str
    batch: int  # images that shared the bundle and the costs below
    offline_seconds: float
    offline_bytes: int
    online_seconds: float
    online_bytes: int
    online_rounds: int

    @property
    def label(self) -> str:
        """The likeliest."""
        return self.labels[0]

    @property
    def probability(self) -> float:
        """The probability of the likeliest label."""
        return self.probabilities[0]

    def is_sure(self, least: float) -> bool:
        """Return whether the likeliest label's probability is at least this; the rest is for a person to decide.

        How many answers that leaves, and how many of them are right, `sphynx eval --per-class` says for test images.
        """
        return self.probability >= least

    def to_json(self, top: int) -> dict[str, Any]:
        costs = ("backend", "batch", "offline_seconds", "offline_bytes", "online_seconds", "online_bytes")
        return {
            "labels": list(self.labels[:top]),
            "probabilities": list(self.probabilities[:top]),
            **{name: getattr(self, name) for name in (*costs, "online_rounds")},
        }


def real_logits(program: Program, integer_logits: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.ldexp(integer_logits.astype(np.float64), -program.logits.scale)


def names_of_classes(program: Program) -> tuple[str, ...]:
    """The names of the classes in the program's order: their numbers where it names none."""
    return program.class_names or tuple(str(number) for number in range(program.logits.shape.size))


def ranked(program: Program, integer_logits: NDArray[np.int64]) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """Labels and probabilities, the likeliest first: softmax of the logits as real numbers, or each label's own sigmoid
    where the network ended in one."""
    return ranked_scores(program, real_logits(program, integer_logits))


def ranked_scores(program: Program, scores: NDArray[np.float64]) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """As `ranked`, from logits that are real numbers."""
    if program.final == "sigmoid":
        probabilities = np.exp(-np.logaddexp(0, -scores))
    else:
        powers = np.exp(scores - scores.max())
        probabilities = powers / powers.sum()
    order = np.argsort(-probabilities, kind="stable")
    names = names_of_classes(program)
    return tuple(names[index] for index in order), tuple(float(probabilities[index]) for index in order)
