"""A smooth function as a constant and a few ReLUs, fitted where the calibration images need it.

    f(x) ~ offset + sum of changes_i max(x - knees_i, 0)

Left of its first knee it is constant. The knees start where the function bends and values lie, and then move with the
slopes to the least squares (Gauss-Newton). The slopes are rounded to what a public sum can hold, and the knees moved
once more, so that the error that is reported is that of the rounded function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import frexp

import numpy as np

from sphynx.compiler.fusion.affine import Floats

SLOPE_BITS = 12  # they are fitted, so that fewer than a factor may have lose nothing, and the ring stays narrower
_GRID = 256
_EVEN_SHARE = 0.1  # of the weight, spread evenly over the range: rare values matter a little, too
_STEPS = 30
_HALVINGS, _HALVED = 50, 64  # of the grid on which the largest error is sought, and how many of its parts at once
_CLOSE = 0.01

Function = Callable[[Floats], Floats]


@dataclass(frozen=True, eq=False)
class Fit:
    offset: float
    knees: Floats
    changes: Floats  # of the slope, at each knee
    low: float
    high: float
    rms_error: float  # over the sample; relative to the function where that is what was fitted
    largest_error: float  # over the whole range

    def __call__(self, x: Floats) -> Floats:
        made: Floats = self.offset + _hinges(x, self.knees) @ self.changes
        return made


def fit(function: Function, sample: Floats, count: int, *, relative: bool = False) -> Fit:
    """Fit at most `count` knees to a sample of what the function reads, its smallest and largest values included.
    A relative fit weighs errors by the function: for what multiplies, as a reciprocal does."""
    low, high = float(sample.min()), float(sample.max())
    even = np.linspace(low, high, _GRID)
    drawn = np.quantile(sample, (np.arange(_GRID) + 0.5) / _GRID)  # as many as the grid has, spread as the values are
    x = np.concatenate([drawn, even])
    root = np.sqrt(np.repeat([1 - _EVEN_SHARE, _EVEN_SHARE], _GRID) / _GRID)
    wanted = function(x)
    root = root / np.abs(wanted) if relative else root
    knees = _first_knees(function, even, drawn, count)
    knees, (offset, *changes) = _improve(x, wanted, root, knees)
    rounded = _round(np.array(changes))
    kept = rounded != 0
    if not kept.any():
        kept[0] = True
    offset, knees = _move(x, wanted, root, knees[kept], rounded[kept])
    made = Fit(offset, knees, rounded[kept], low, high, rms_error=0.0, largest_error=0.0)
    exactly = function(drawn)
    wrong = (made(drawn) - exactly) / (exactly if relative else 1)
    rms = float(np.sqrt(np.square(wrong).mean()))
    return replace(made, rms_error=rms, largest_error=_largest_error(function, made, drawn, relative=relative))


def _largest_error(function: Function, made: Fit, drawn: Floats, *, relative: bool) -> float:
    """Search a grid, which is halved where an error could be larger than any that was seen: between two of its points,
    beside which neither function turns, none is beyond both values of the one against both values of the other."""
    pole = np.clip([0.0], made.low, made.high)  # of logarithms, roots and reciprocals
    x = np.unique(np.concatenate([drawn, np.linspace(made.low, made.high, 16 * _GRID), made.knees, pole]))
    left, right = x[:-1], x[1:]
    largest = float(_errors(made(x), function(x), relative=relative).max())
    for _ in range(_HALVINGS):
        fitted, exactly = (made(left), made(right)), (function(left), function(right))
        most = np.max([_errors(one, other, relative=relative) for one in fitted for other in exactly], axis=0)
        worst = np.argsort(most)[-_HALVED:]
        worst = worst[most[worst] > largest * (1 + _CLOSE)]
        if not len(worst):
            break
        middle = (left[worst] + right[worst]) / 2
        largest = max(largest, float(_errors(made(middle), function(middle), relative=relative).max()))
        left, right = np.concatenate([left[worst], middle]), np.concatenate([middle, right[worst]])
    return largest


def _errors(made: Floats, exactly: Floats, *, relative: bool) -> Floats:
    wrong: Floats = np.abs((made - exactly) / (exactly if relative else 1))
    return wrong


def _hinges(x: Floats, knees: Floats) -> Floats:
    made: Floats = np.maximum(x[..., None] - knees, 0)
    return made


def _first_knees(function: Function, even: Floats, drawn: Floats, count: int) -> Floats:
    """Place knees as densely as the best ones are: the fifth root of the squared curvature times values' density."""
    bends = np.abs(np.gradient(np.gradient(function(even), even), even)) if even[0] < even[-1] else np.zeros(_GRID)
    values = np.histogram(drawn, _GRID, (even[0], even[-1] + 1e-9))[0] / _GRID
    values = np.convolve(values, np.ones(9) / 9, "same") + _EVEN_SHARE / _GRID
    density = (np.square(bends) * values) ** 0.2
    density += 1e-3 * density.max() + 1e-9
    shares = np.concatenate([[0], np.cumsum(density)[:-1]]) / density.sum()
    knees: Floats = np.interp(np.arange(count) / count, shares, even)
    return knees


def _solve(x: Floats, wanted: Floats, root: Floats, knees: Floats) -> tuple[Floats, float]:
    """The offset and changes for these knees, and the weighted sum of squared errors."""
    basis = np.concatenate([np.ones((len(x), 1)), _hinges(x, knees)], axis=1)
    found = _least_squares(basis * root[:, None], wanted * root)
    return found, float(np.square((basis @ found - wanted) * root).sum())


def _least_squares(basis: Floats, wanted: Floats, damping: float = 1e-12) -> Floats:
    """Damped: knees that lie together, or at which the slope hardly changes, could move far for nothing."""
    square = basis.T @ basis
    found: Floats = np.linalg.solve(square + damping * np.trace(square) * np.eye(len(square)), basis.T @ wanted)
    return found


def _improve(x: Floats, wanted: Floats, root: Floats, knees: Floats) -> tuple[Floats, Floats]:
    """Knees and coefficients at a minimum near these knees: whole Gauss-Newton steps, or parts of them."""
    found, error = _solve(x, wanted, root, knees)
    for _ in range(_STEPS):
        steps = -found[1:] * (x[:, None] > knees)
        basis = np.concatenate([np.ones((len(x), 1)), _hinges(x, knees), steps], axis=1) * root[:, None]
        left = (wanted - found[0] - _hinges(x, knees) @ found[1:]) * root
        move = _least_squares(basis, left, 1e-7)[1 + len(knees) :]
        for part in (1.0, 0.3, 0.1, 0.03):
            tried = np.sort(np.clip(knees + part * move, x.min(), x.max()))
            solved, its_error = _solve(x, wanted, root, tried)
            if its_error < error * (1 - 1e-6):
                knees, found, error = tried, solved, its_error
                break
        else:
            break
    return knees, found


def _round(changes: Floats) -> Floats:
    """The slopes between the knees, rounded to the factors that a public sum can have; the changes that follow."""
    largest = float(np.abs(changes).max())
    if not largest:
        return changes
    scale = SLOPE_BITS - 1 - frexp(largest)[1]
    slopes = np.rint(np.ldexp(np.cumsum(changes), scale))
    return np.ldexp(np.diff(slopes, prepend=0.0), -scale)


def _move(x: Floats, wanted: Floats, root: Floats, knees: Floats, changes: Floats) -> tuple[float, Floats]:
    """The best offset and knees near these for changes that stay as they are."""

    def offset_and_error(tried: Floats) -> tuple[float, float]:
        left = wanted - _hinges(x, tried) @ changes
        offset = float((np.square(root) * left).sum() / np.square(root).sum())
        return offset, float(np.square((left - offset) * root).sum())

    offset, error = offset_and_error(knees)
    for _ in range(4):
        basis = np.concatenate([np.ones((len(x), 1)), -changes * (x[:, None] > knees)], axis=1) * root[:, None]
        left = (wanted - offset - _hinges(x, knees) @ changes) * root
        move = _least_squares(basis, left, 1e-7)[1:]
        tried = np.clip(knees + move, x.min(), x.max())
        new_offset, its_error = offset_and_error(tried)
        if its_error >= error:
            break
        offset, knees, error = new_offset, tried, its_error
    return offset, knees
