"""What a client gets for its image: labels with probabilities, and what the answer cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sphynx.program.ir import Program


@dataclass(frozen=True, eq=False)
class Prediction:
    labels: tuple[str, ...]  # the likeliest first
    probabilities: tuple[float, ...]
    logits: NDArray[np.int64]  # in the program's order and fixed point
    backend: str
    batch: int  # images that shared the bundle and the costs below
    offline_seconds: float
    offline_bytes: int
    online_seconds: float
    online_bytes: int
    online_rounds: int

    def to_json(self, top: int) -> dict[str, Any]:
        costs = ("backend", "batch", "offline_seconds", "offline_bytes", "online_seconds", "online_bytes")
        return {
            "labels": list(self.labels[:top]),
            "probabilities": list(self.probabilities[:top]),
            **{name: getattr(self, name) for name in (*costs, "online_rounds")},
        }


def ranked(program: Program, logits: NDArray[np.int64]) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """Labels and probabilities (softmax of the logits as real numbers), the likeliest first."""
    scores = np.ldexp(logits.astype(np.float64), -program.logits.scale)
    powers = np.exp(scores - scores.max())
    probabilities = powers / powers.sum()
    order = np.argsort(-probabilities, kind="stable")
    names = program.class_names or tuple(str(number) for number in range(len(logits)))
    return tuple(names[index] for index in order), tuple(float(probabilities[index]) for index in order)
