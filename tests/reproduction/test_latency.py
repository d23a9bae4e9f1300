"""The paper's estimator gives the paper's printed values."""

import pytest
from reproduction.latency import (
    imagenet_estimates,
    implied_gc_s_per_relu,
    latency_s,
    measured_s_per_relu,
    rescaled_s,
    safenet,
)
from reproduction.latency_claims import latency_claims


def test_the_gc_time_per_relu_is_one_number() -> None:
    assert implied_gc_s_per_relu() == pytest.approx(21e-6, rel=1e-3)
    # The mean of 2350/102.4, 4401/204.8, 6140/286.72, 10205/491.52, 12548/614.4, in microseconds.
    assert measured_s_per_relu() == pytest.approx(21.41e-6, rel=1e-3)


# Printed: ReLUs in thousands, milliseconds.
@pytest.mark.parametrize(
    ("relus", "printed_ms"), [(288.4, 6060), (577, 12120), (1154, 24225), (470, 9870), (940, 19740), (2308, 48450)]
)
def test_reference_networks_are_gc_time_alone(relus: float, printed_ms: float) -> None:
    assert 1e3 * latency_s(round(1e3 * relus), implied_gc_s_per_relu()) == pytest.approx(printed_ms, rel=1e-3)


@pytest.mark.parametrize(
    ("relus", "printed_ms", "plaintext_ms"),
    [(172, 3670, 58), (345, 7340, 95), (517, 10980, 123), (690, 14670, 180), (862, 18340, 238), (1034, 22020, 306)],
)
def test_sphynx_rows_have_plaintext_time_beyond(relus: int, printed_ms: float, plaintext_ms: float) -> None:
    (row,) = (row for row in imagenet_estimates() if row.network == f"Sphynx, {relus}K")
    assert 1e3 * row.left_for_plaintext_s == pytest.approx(plaintext_ms, abs=1)
    again = latency_s(row.relus, implied_gc_s_per_relu(), row.left_for_plaintext_s)
    assert 1e3 * again == pytest.approx(printed_ms)
    assert abs(row.from_tiny_error) < 0.01
    assert row.to_json()["is_estimate"] is True


def test_every_printed_row_is_within_three_and_a_half_percent() -> None:
    rows = imagenet_estimates()
    assert len(rows) == 13
    assert all(abs(row.from_tiny_error) < 0.035 for row in rows)


def test_safenet_is_scaled_by_delphi_on_both_machines() -> None:
    assert rescaled_s(7.2, 14.4, 4.44) == pytest.approx(2.22)  # the text: 4.4 s here, 14.4 s there, 2.2 s
    found = safenet()
    assert (found.here_s, found.delphi_here_s) == (2.22, 4.44)
    assert found.there_s == pytest.approx(7.2)


def test_statements_about_latencies_follow_from_the_columns() -> None:
    """Expect 1670/727, 1230/727, 2220/861, 727/579, 727 - 579, and 1114 where 1105 stands elsewhere."""
    claims = latency_claims()
    computed = [1670 / 727, 1230 / 727, 2220 / 861, 100 * (727 / 579 - 1), 148, 1114]
    assert [claim.ours for claim in claims[:6]] == pytest.approx(computed)
    assert [claim.agrees for claim in claims] == [True, True, True, True, False, False, True]
