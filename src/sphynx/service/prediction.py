"""The answer that a client gets: named arrays, labels with probabilities where there are classes, and what it cost. Of
a server that reveals labels alone it is a label, or that the server's program is not sure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sphynx.errors import InputError
from sphynx.program.classes import names_of_classes, real_logits, require_classes, scores_of
from sphynx.program.ir import Program
from sphynx.program.labels import NOT_SURE

UNSURE = "not sure"  # in place of a label


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
    # Of all outputs, one behind the other: the oracle's, bit for bit; or the number of the label, or NOT_SURE.
    integers: NDArray[np.int64] = field(repr=False)
    backend: str
    batch: int  # inputs that shared the bundle and the costs below
    offline_seconds: float
    offline_bytes: int
    online_seconds: float
    online_bytes: int
    online_rounds: int

    @cached_property
    def outputs(self) -> dict[str, NDArray[np.float64]]:
        """Each output as the network gives it, its own final function applied. Raises InputError of a label alone."""
        self._require_scores()
        answers = self.program.answers(self.program.real_numbers(self.integers[None]))
        return {name: array[0] for name, array in answers.items()}

    @property
    def has_classes(self) -> bool:
        """Return whether there are labels."""
        return self.program.classes is not None

    @property
    def has_scores(self) -> bool:
        """Return whether there are numbers: the server reveals more than a label."""
        return not self.program.reveals_label

    def _require_scores(self) -> None:
        if not self.has_scores:
            raise InputError(
                "this server reveals labels, and neither scores nor probabilities",
                where=self.program.name or "program",
                remedy="Read the label alone, or that it is not sure.",
            )

    @property
    def class_names(self) -> tuple[str, ...]:
        """The names of the classes in the program's order, which does not depend on the input."""
        return names_of_classes(self.program)

    @property
    def integer_logits(self) -> NDArray[np.int64]:
        """The scores in the program's fixed point: those of classes, else the first vector."""
        self._require_scores()
        found: NDArray[np.int64] = self.program.split(self.integers[None])[scores_of(self.program).name][0]
        return found

    @property
    def logits(self) -> NDArray[np.float64]:
        """The scores as real numbers, before the network's final function."""
        self._require_scores()
        return real_logits(self.program, self.integers)

    @cached_property
    def _ranked(self) -> tuple[tuple[str, ...], tuple[float, ...]]:
        if not self.has_scores:
            number = int(self.integers[0])
            return (() if number == NOT_SURE else (self.class_names[number],)), ()
        return ranked(self.program, self.integers)

    @property
    def labels(self) -> tuple[str, ...]:
        """All labels, the likeliest first. Where labels alone are revealed: the one, or none if that is not sure."""
        return self._ranked[0]

    @property
    def probabilities(self) -> tuple[float, ...]:
        """The probabilities of the labels, in their order; none from a server that reveals labels alone."""
        return self._ranked[1]

    @property
    def label(self) -> str:
        """The likeliest; "not sure" where a server that reveals labels alone says so."""
        return self.labels[0] if self.labels else UNSURE

    @property
    def probability(self) -> float:
        """The probability of the likeliest label."""
        self._require_scores()
        return self.probabilities[0]

    def is_sure(self, least: float) -> bool:
        """Return whether the likeliest label's probability is at least this; the rest is for a person to decide.
        A server that reveals labels alone decides itself: then `least` is 0.

        How many answers that leaves, and how many of them are right, `sphynx eval --per-class` says for test images.
        """
        if not self.has_scores and not least:
            return bool(self.labels)
        return self.probability >= least

    def to_json(self, top: int) -> dict[str, Any]:
        """The best labels where there are any, all other outputs as nested lists, and costs."""
        costs = ("backend", "batch", "offline_seconds", "offline_bytes", "online_seconds", "online_bytes")
        found: dict[str, Any] = {}
        if not self.has_scores:
            found = {"labels": list(self.labels), "sure": self.is_sure(0)}
        elif self.has_classes:
            found = {"labels": list(self.labels[:top]), "probabilities": list(self.probabilities[:top])}
        if self.has_scores:
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
