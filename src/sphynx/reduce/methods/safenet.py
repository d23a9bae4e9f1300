"""`safenet`: SAFENet (Lou, Shen, Jin, Jiang, ICLR 2021): each channel keeps its ReLU or becomes a polynomial.

A gate for each channel learns together with the weights and the polynomials' coefficients (`masks`); the channels of
the largest gates keep their ReLUs, as many as the budget holds.

What differs: polynomials are of degree 2 only, where the paper mixes degrees 0 to 3; gates are learned by gradients
under a budget, where the paper searches mixing ratios by population-based training under an accuracy floor.
"""

from __future__ import annotations

from sphynx.reduce.masks import choose_by_masks
from sphynx.reduce.task import Choice, Task


def choose_safenet(task: Task) -> Choice:
    return choose_by_masks(task, per_value=False, squares=True)
