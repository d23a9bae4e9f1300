"""Scores against scikit-learn's; what their intervals promise, on planted answers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn import metrics

from sphynx.train.calibration import fit_temperature
from sphynx.train.scores import Scores, reliability, roc_curve, score, softmax

NAMES = ("normal", "bacterial", "viral")


def answered(seed: int, images: int = 150) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    random = np.random.default_rng(seed)
    labels = random.choice(3, images, p=[0.6, 0.3, 0.1])
    logits = random.normal(size=(images, 3)) + 1.5 * np.eye(3)[labels]
    return np.round(logits, 1), labels  # rounded: some are equal


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6))
def test_scores_are_scikit_learns(seed: int) -> None:
    logits, labels = answered(seed)
    found, answers, sure = score(logits, labels, NAMES), logits.argmax(1), softmax(logits)
    assert found.accuracy.value == pytest.approx(metrics.accuracy_score(labels, answers))
    assert found.balanced_accuracy.value == pytest.approx(metrics.balanced_accuracy_score(labels, answers))
    assert found.mcc.value == pytest.approx(metrics.matthews_corrcoef(labels, answers))
    recalls = metrics.recall_score(labels, answers, average=None, labels=range(3), zero_division=0)
    for number, one in enumerate(found.classes):
        assert one.sensitivity.value == pytest.approx(recalls[number])
        specificity = metrics.recall_score(labels != number, answers != number)
        assert one.specificity.value == pytest.approx(specificity)
        assert one.auc.value == pytest.approx(metrics.roc_auc_score(labels == number, sure[:, number]))
        alarms, hits = roc_curve(sure[:, number], labels == number)
        assert metrics.auc(alarms, hits) == pytest.approx(one.auc.value)
        theirs = metrics.roc_curve(labels == number, sure[:, number], drop_intermediate=False)
        np.testing.assert_allclose(alarms, theirs[0])
        np.testing.assert_allclose(hits, theirs[1])
    assert Scores.from_json(found.to_json()) == found


def test_the_calibration_error_by_hand() -> None:
    logits = np.log([[0.9, 0.05, 0.05], [0.9, 0.05, 0.05], [0.4, 0.35, 0.25]])
    labels = np.array([0, 1, 0])
    found = score(logits, labels, NAMES)
    assert found.calibration_error.value == pytest.approx(2 / 3 * abs(0.9 - 0.5) + 1 / 3 * (1 - 0.4))
    bins = reliability(logits, labels)
    np.testing.assert_allclose(bins, [(0.4, 1.0, 1), (0.9, 0.5, 2)])
    sure = {one.threshold: (one.answered, one.accuracy) for one in found.sure}
    assert sure[0.5] == (2 / 3, 0.5) and sure[0.99] == (0.0, None)


def test_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    held = 0
    for seed in range(100):
        random = np.random.default_rng(seed)
        right = random.random(80) < 0.8
        logits = np.where(right[:, None], [2.0, 0.0], [0.0, 2.0])
        interval = score(logits, np.zeros(80, np.int64), ("a", "b"), seed=seed).accuracy
        held += interval.low <= 0.8 <= interval.high
    assert 85 <= held <= 100


def test_groups_widen_the_intervals() -> None:
    """Ten images of one patient, all right or all wrong, are one observation."""
    right = np.repeat(np.random.default_rng(0).random(40) < 0.8, 10)
    logits = np.where(right[:, None], [2.0, 0.0], [0.0, 2.0])
    labels, patients = np.zeros(400, np.int64), np.repeat(np.arange(40), 10)
    alone = score(logits, labels, ("a", "b")).accuracy
    grouped = score(logits, labels, ("a", "b"), patients)
    assert grouped.groups == 40
    assert grouped.accuracy.high - grouped.accuracy.low > 2 * (alone.high - alone.low)


def test_a_class_without_images_has_no_say() -> None:
    logits, labels = answered(1)
    found = score(logits[labels < 2], labels[labels < 2], NAMES)
    assert found.classes[2].images == 0 and found.classes[2].sensitivity.value == 0
    wanted = metrics.recall_score(labels[labels < 2], logits[labels < 2].argmax(1), average=None, labels=[0, 1])
    assert found.balanced_accuracy.value == pytest.approx(wanted.mean())
    assert score(logits, labels, [str(n) for n in range(21)]).classes == ()


@pytest.mark.parametrize("temperature", [0.3, 1.0, 4.0])
def test_a_planted_temperature_is_found(temperature: float) -> None:
    random = np.random.default_rng(0)
    meant = random.normal(size=(20_000, 3)) * 2
    labels = np.array([random.choice(3, p=row) for row in softmax(meant)])
    found = fit_temperature(temperature * meant, labels)
    assert found == pytest.approx(temperature, rel=0.05)
    nearby = [metrics.log_loss(labels, softmax(temperature * meant / (found * factor))) for factor in (0.98, 1.0, 1.02)]
    assert nearby[1] == min(nearby)


def test_answers_that_are_all_right_do_not_run_away() -> None:
    logits = np.eye(3)
    assert 0.01 <= fit_temperature(logits, np.arange(3)) < 0.1
    assert fit_temperature(np.zeros((0, 3)), np.zeros(0, np.int64)) == 1.0
