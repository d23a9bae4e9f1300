"""How much better one row of the final table is than another, and whether that could be chance."""

import pytest

from sphynx.design.results import Row, gain


def test_gains_carry_their_standard_error() -> None:
    def row(*accuracies: float, deviation: float | None) -> Row:
        return Row("x", accuracies, sum(accuracies) / len(accuracies), deviation, 1, 0.0)

    lost = gain(row(0.90, 0.92, deviation=0.02), row(0.95, 0.97, deviation=0.02))
    assert lost.points == pytest.approx(-5) and lost.standard_error == pytest.approx(2)
    assert str(lost) == "lost 5.00 points against x (standard error 2.00)"
    close = gain(row(0.90, 0.92, deviation=0.02), row(0.90, 0.91, deviation=0.02))
    assert "within chance" in str(close)
    assert "no spread" in str(gain(row(0.9, deviation=None), row(0.8, deviation=None)))
