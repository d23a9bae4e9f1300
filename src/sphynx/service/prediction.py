"""The answer that a client gets: named arrays, labels with probabilities where there are classes, and what it cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sphynx.program.classes import names_of_classes, real_logits, require_classes, scores_of
from sphynx.program.ir import Program


@dataclass(frozen=True, eq=False)
class Prediction:
    """A private answer: its outputs by name; labels with probabilities, the likeliest first; costs.

    >>> compiled = sphynx.Compiled.load("compiled/digits")
    >>> [answer] = compiled.infer_privately(sphynx.open_data("digits").test.images[:1].numpy())
    >>> answer.label == answer.labels[0], answer.backend, answer.online_rounds > 0
    (True, 'gmw', True)
    >>> answer.class_names[answer.logits.argmax()] == answer.label
    True
    >>> answer.outputs["logits"].shape
    (10,)
    """

    program: Program = field(repr=False)
    integers: NDArray[np.int64] = field(repr=False)  # of all outputs, one behind the other: the oracle's, bit for bit
    backend: str
    batch: int  # inputs that shared the bundle and the costs below
    offline_seconds: float
    offline_bytes: int
    online_seconds: float
    online_bytes: int
    online_rounds: int

    @cached_property
    def outputs(self) -> dict[str, NDArray[np.float64]]:
        """Each output as the network gives it, its own final function applied."""
        answers = self.program.answers(self.program.real_numbers(self.integers[None]))
        return {name: array[0] for name, array in answers.items()}

    @property
    def has_classes(self) -> bool:
        """Return whether there are labels."""
        return self.program.classes is not None

    @property
    def class_names(self) -> tuple[str, ...]:
        """The names of the classes in the program's order, which does not depend on the input."""
        return names_of_classes(self.program)

    @property
    def integer_logits(self) -> NDArray[np.int64]:
        """The scores in the program's fixed point: those of classes, else the first vector."""
        found: NDArray[np.int64] = self.program.split(self.integers[None])[scores_of(self.program).name][0]
        return found

    @property
    def logits(self) -> NDArray[np.float64]:
        """The scores as real numbers, before the network's final function."""
        return real_logits(self.program, self.integers)

    @cached_property
    def _ranked(self) -> tuple[tuple[str, ...], tuple[float, ...]]:
        return ranked(self.program, self.integers)

    @property
    def labels(self) -> tuple[str, ...]:
        """All labels, the likeliest first."""
        return self._ranked[0]

    @property
    def probabilities(self) -> tuple[float, ...]:
        """The probabilities of the labels, in their order."""
        return self._ranked[1]

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
        """The best labels where there are any, all other outputs as nested lists, and costs."""
        costs = ("backend", "batch", "offline_seconds", "offline_bytes", "online_seconds", "online_bytes")
        found: dict[str, Any] = {}
        if self.has_classes:
            found = {"labels": list(self.labels[:top]), "probabilities": list(self.probabilities[:top])}
        found["outputs"] = {name: array.tolist() for name, array in self.outputs.items()}
        return {**found, **{name: getattr(self, name) for name in (*costs, "online_rounds")}}


def ranked(program: Program, integers: NDArray[np.int64]) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """Labels and probabilities, the likeliest first: softmax of the scores as real numbers, or each label's own sigmoid
    where the network ended in one."""
    return ranked_scores(program, real_logits(program, integers))


def ranked_scores(program: Program, scores: NDArray[np.float64]) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """As `ranked`, from scores that are real numbers."""
    if require_classes(program).final == "sigmoid":
        probabilities = np.exp(-np.logaddexp(0, -scores))
    else:
        powers = np.exp(scores - scores.max())
        probabilities = powers / powers.sum()
    order = np.argsort(-probabilities, kind="stable")
    names = names_of_classes(program)
    return tuple(names[index] for index in order), tuple(float(probabilities[index]) for index in order)
