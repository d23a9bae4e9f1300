"""How good answers are where classes are unequal or errors unequally grave: more than their accuracy.

    balanced accuracy   mean over the classes of the share that is answered right
    MCC                 Matthews' correlation of answers and labels (Gorodkin 2004 for more than two classes)
    sensitivity         of a class: the share of its images that are answered so
    specificity         of a class: the share of the other images that are not answered so
    AUC                 of a class: how often its probability is higher for one of its images than for another
    calibration error   mean distance of probability and accuracy over 15 equal bins of probability (Naeini et al. 2015)

Intervals hold 95 % of bootstrap samples: whole groups are drawn again where images have groups, since those of one
patient are not independent, else single images. Intervals say nothing of how trainings differ: several seeds do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sphynx.record import Record

RESAMPLES = 1000
FEW_CLASSES = 20  # that are scored one by one
BINS = 15
THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
LOW, HIGH = 0.025, 0.975

Reals = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Estimate(Record):
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class OneClass(Record):
    name: str
    images: int
    sensitivity: Estimate
    specificity: Estimate
    auc: Estimate


@dataclass(frozen=True)
class Sure(Record):
    """The answers that are left to a client that takes those below a probability as "not sure"."""

    threshold: float
    answered: float  # share of the images
    accuracy: float | None  # of these


@dataclass(frozen=True)
class Scores(Record):
    images: int
    groups: int  # that the intervals are drawn from; as many as images where they have none
    accuracy: Estimate
    balanced_accuracy: Estimate
    mcc: Estimate
    calibration_error: Estimate
    classes: tuple[OneClass, ...]  # none where there are more than 20
    sure: tuple[Sure, ...]


def score(
    logits: Reals,
    labels: Integers,
    class_names: Sequence[str],
    groups: Integers | None = None,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Scores:
    """Score the answers that the highest logits are; `groups` says which images belong together."""
    case = _Case(logits, labels, len(class_names))
    samples = np.stack([case.measured(weights) for weights in _samples(len(labels), groups, resamples, seed)])
    accuracy, balanced, mcc, calibration_error, *of_classes = map(_estimate, samples.T)
    scored = case.scored
    classes = (
        OneClass(name, int((labels == number).sum()), *of_classes[number :: len(scored)])
        for number, name in zip(scored, class_names, strict=False)
    )
    return Scores(
        len(labels),
        len(labels) if groups is None else len(np.unique(groups)),
        accuracy,
        balanced,
        mcc,
        calibration_error,
        tuple(classes),
        tuple(_sure(threshold, case.sure, case.right) for threshold in THRESHOLDS),
    )


class _Case:
    """Answers and what can be prepared of them before they are weighted as each sample weights them."""

    def __init__(self, logits: Reals, labels: Integers, size: int) -> None:
        probabilities, self.answers, self.labels, self.size = softmax(logits), logits.argmax(1), labels, size
        self.scored = range(size if size <= FEW_CLASSES else 0)
        self.right = self.answers == labels
        self.sure: Reals = probabilities[np.arange(len(labels)), self.answers]
        self._bins = _bins(self.sure)
        self._ranks = [np.unique(probabilities[:, number], return_inverse=True)[1] for number in self.scored]

    def measured(self, weights: Reals) -> Reals:
        """Accuracy, balanced accuracy, MCC, calibration error; all classes' sensitivities, specificities and AUCs."""
        # [class, answer]
        pairs = self.labels * self.size + self.answers
        counts: Reals = np.bincount(pairs, weights, self.size**2).reshape(self.size, self.size).astype(np.float64)
        images, right, of_class, answered = counts.sum(), counts.diagonal(), counts.sum(1), counts.sum(0)
        sensitivities = _ratio(right, of_class)
        specificities = 1 - _ratio(answered - right, images - of_class)
        gaps = np.bincount(self._bins, weights * (self.sure - self.right), BINS)
        few = len(self.scored)
        return np.array(
            [
                right.sum() / images,
                sensitivities[of_class > 0].mean(),
                _correlation(counts),
                np.abs(gaps).sum() / images,
                *sensitivities[:few],
                *specificities[:few],
                *(_area(ranks, self.labels == number, weights) for number, ranks in enumerate(self._ranks)),
            ]
        )


def softmax(logits: Reals) -> Reals:
    powers = np.exp(logits - logits.max(1, keepdims=True))
    found: Reals = powers / powers.sum(1, keepdims=True)
    return found


def roc_curve(scores: Reals, is_class: NDArray[np.bool_]) -> tuple[Reals, Reals]:
    """1 - specificity and sensitivity at every threshold, from (0, 0) to (1, 1)."""
    order = np.argsort(-scores, kind="stable")
    last = np.flatnonzero(np.diff(scores[order], append=np.nan) != 0)  # of equal scores
    hits, alarms = np.cumsum(is_class[order])[last], np.cumsum(~is_class[order])[last]
    return tuple(np.concatenate([[0.0], count / max(count[-1], 1)]) for count in (alarms, hits))  # type: ignore[return-value]  # two


def reliability(logits: Reals, labels: Integers) -> list[tuple[float, float, int]]:
    """Mean probability, accuracy and number of images of each bin that has any."""
    answers = logits.argmax(1)
    sure = softmax(logits)[np.arange(len(labels)), answers]
    bins = _bins(sure)
    return [
        (float(sure[bins == one].mean()), float((answers == labels)[bins == one].mean()), int((bins == one).sum()))
        for one in np.unique(bins)
    ]


def _samples(images: int, groups: Integers | None, resamples: int, seed: int) -> Iterator[Reals]:
    """How often each image is in a sample; the first sample is the images themselves."""
    of_image = np.arange(images) if groups is None else np.unique(groups, return_inverse=True)[1]
    count, random = int(of_image.max(initial=-1)) + 1, np.random.default_rng(seed)
    yield np.ones(images)
    for _ in range(resamples):
        drawn = np.bincount(random.integers(0, count, count), minlength=count)
        yield drawn[of_image].astype(np.float64)


def _ratio(part: Reals, whole: Reals) -> Reals:
    """Not a number where there is nothing to divide by."""
    found: Reals = np.divide(part, whole, out=np.full(np.shape(part), np.nan), where=whole > 0)
    return found


def _correlation(counts: Reals) -> float:
    """0 where all answers, or all labels, are of one class."""
    images, labels, answers = counts.sum(), counts.sum(1), counts.sum(0)
    above = counts.trace() * images - labels @ answers
    below = (images**2 - labels @ labels) * (images**2 - answers @ answers)
    return float(above / np.sqrt(below)) if below > 0 else 0.0


def _area(ranks: Integers, is_class: NDArray[np.bool_], weights: Reals) -> float:
    """The area under the ROC curve: pairs of equal scores count half."""
    own, others = np.bincount(ranks, weights * is_class), np.bincount(ranks, weights * ~is_class)
    pairs = own.sum() * others.sum()
    return float((own * (np.cumsum(others) - others / 2)).sum() / pairs) if pairs else math.nan


def _bins(sure: Reals) -> Integers:
    """(0, 1/15], (1/15, 2/15], ..."""
    found: Integers = np.clip(np.ceil(sure * BINS).astype(np.int64) - 1, 0, BINS - 1)
    return found


def _sure(threshold: float, sure: Reals, right: NDArray[np.bool_]) -> Sure:
    answered = sure >= threshold
    share = float(answered.mean()) if len(sure) else 0.0
    return Sure(threshold, share, float(right[answered].mean()) if answered.any() else None)


def _estimate(samples: Reals) -> Estimate:
    """The first sample is the value itself; samples that say nothing are left out."""
    known = samples[1:][~np.isnan(samples[1:])]
    value = float(np.nan_to_num(samples[0]))
    low, high = np.quantile(known, [LOW, HIGH]).tolist() if len(known) else (value, value)
    return Estimate(value, float(low), float(high))
