"""Pictures of how good answers are: the ROC curve of each class, and whether probabilities are right as often."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from sphynx.report.figures import Chart
from sphynx.svg.chart_axes import Axis
from sphynx.svg.charts import Point, Series, curves
from sphynx.svg.drawing import SERIES, Drawing
from sphynx.train.scores import Scores, reliability, roc_curve, softmax
from sphynx.units import class_text

MOST_POINTS = 200  # of a curve: a picture shows no more
_SHARE = Axis(0.0, 1.0, (0.0, 0.2, 0.4, 0.6, 0.8, 1.0))
_DIAGONAL = (Point(0.0, 0.0), Point(1.0, 1.0))


def score_charts(scores: Scores, logits: NDArray[np.float64], labels: NDArray[np.int64]) -> tuple[Chart, ...]:
    """The curves of at most as many classes as colours can be told apart."""
    charts = [_reliability_chart(scores, logits, labels)]
    if 1 < len(scores.classes) <= SERIES:
        charts.insert(0, _roc_chart(scores, logits, labels))
    return tuple(charts)


def _roc_chart(scores: Scores, logits: NDArray[np.float64], labels: NDArray[np.int64]) -> Chart:
    probabilities, series = softmax(logits), []
    for number, one in enumerate(scores.classes):
        alarms, hits = roc_curve(probabilities[:, number], labels == number)
        kept = np.unique(np.linspace(0, len(alarms) - 1, MOST_POINTS).round().astype(int))
        points = [Point(float(alarms[place]), float(hits[place])) for place in kept]
        name = f"{class_text(one.name)}: {one.auc.value:.3f} ({one.auc.low:.3f} to {one.auc.high:.3f})"
        series.append(Series(name, points, f"s{number}", marked=False))
    caption = (
        "Each class against all others, by its probability: how many of its images are found, and how many others are "
        "taken for them, at every threshold. Areas under the curves with 95 % intervals."
    )
    draw = partial(_square, "ROC", series, "1 - specificity", "sensitivity")
    return Chart("roc", "Finding a class: ROC", caption, draw)


def _reliability_chart(scores: Scores, logits: NDArray[np.float64], labels: NDArray[np.int64]) -> Chart:
    bins = reliability(logits, labels)
    points = [Point(sure, right, f"{images:,} images") for sure, right, images in bins]
    error = scores.calibration_error
    name = f"calibration error {error.value:.3f} ({error.low:.3f} to {error.high:.3f})"
    caption = (
        "The share of right answers among the images that are answered with about this probability. "
        "On the line both are equal."
    )
    draw = partial(_square, "reliability", [Series(name, points, "s0")], "probability", "share of right answers")
    return Chart("reliability", "Probabilities and right answers", caption, draw)


def _square(title: str, series: Sequence[Series], x_name: str, y_name: str, width: float) -> Drawing:
    diagonal = Series("", _DIAGONAL, "muted", marked=False, dashed=True, named=False)
    return curves(title, [*series, diagonal], _SHARE, _SHARE, x_name=x_name, y_name=y_name, width=min(width, 460.0))
