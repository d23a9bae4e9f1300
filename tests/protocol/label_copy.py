"""A client that changes nothing copies a linear classifier by its labels: pictures on the boundary of two classes, each
found by halving the way between two pictures that were answered differently, give linear equations for the weights.

By logits 17 pictures, none lit and each of 16 pixels lit, give all 51 numbers exactly. Labels give them but for a
common scale and what all classes have in common, and as exactly as pixels are fine.

    python -m tests.protocol.label_copy      counts the questions; labels are the oracle's, which private ones equal
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sphynx.program.labels import find_labels

PIXELS, CLASSES, MIDDLE = 16, 3, 127.5
Floats = NDArray[np.float64]


@dataclass
class Owner:
    """Answers with labels, and counts them."""

    weights: NDArray[np.int64]
    bias: NDArray[np.int64]
    questions: int = 0

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> Owner:
        weights = rng.integers(-127, 128, (CLASSES, PIXELS))
        bias = rng.integers(-3000, 3000, CLASSES) - (MIDDLE * weights.sum(axis=1)).astype(np.int64)
        return cls(weights, bias)

    def ask(self, pictures: NDArray[np.int64]) -> NDArray[np.int64]:
        self.questions += len(pictures)
        return find_labels(pictures @ self.weights.T + self.bias)

    @property
    def numbers(self) -> Floats:
        """Weights and biases of pixels from -1 to 1, as a copy has them: without what classes share, of length one."""
        numbers = np.c_[self.weights * MIDDLE, self.bias + MIDDLE * self.weights.sum(axis=1)]
        numbers -= numbers.mean(axis=0)
        scaled: Floats = numbers / np.linalg.norm(numbers)
        return scaled


def copy(owner: Owner, boundaries: int, rng: np.random.Generator) -> Floats:
    """Find the numbers from this many pictures on boundaries."""
    pictures = rng.integers(0, 256, (40, PIXELS))
    labels = owner.ask(pictures)
    equations: list[Floats] = []
    while len(equations) < boundaries:
        (low, high), (first, second) = pictures[pair := rng.integers(len(pictures), size=2)], labels[pair]
        if first == second:
            continue
        while np.abs(high - low).max() > 1:
            middle = (low + high) // 2
            label = int(owner.ask(middle[None])[0])
            low, high, second = (middle, high, second) if label == first else (low, middle, label)
        equation = np.zeros((CLASSES, PIXELS + 1))
        equation[first] = np.append((low + high) / 2 / MIDDLE - 1, 1.0)
        equation[second] = -equation[first]
        equations.append(equation.reshape(-1))
    shared = np.kron(np.ones((1, CLASSES)), 10 * np.eye(PIXELS + 1))
    found: Floats = np.linalg.svd(np.concatenate([np.stack(equations), shared]))[2][-1].reshape(CLASSES, PIXELS + 1)
    return found * np.sign((found * owner.numbers).sum())


def largest_error(boundaries: int, seed: int) -> tuple[int, float]:
    """Count the questions, and how far the worst weight is off, as a part of the largest."""
    rng = np.random.default_rng(seed)
    owner = Owner.drawn(rng)
    found, true = copy(owner, boundaries, rng)[:, :PIXELS], owner.numbers[:, :PIXELS]
    return owner.questions, float(np.abs(found - true).max() / np.abs(true).max())


if __name__ == "__main__":
    for wanted in (40, 80, 160, 320, 640):
        asked, errors = np.median([largest_error(wanted, seed) for seed in range(10)], axis=0)
        each = asked / (CLASSES * (PIXELS + 1))
        print(f"{asked:,.0f} questions, {each:.1f} for each number: the worst weight is {errors:.2%} off")
