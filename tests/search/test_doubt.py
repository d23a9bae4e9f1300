"""A placement search says when its choice is inconclusive."""

import pytest

from sphynx.search.placement.doubt import doubt

PLACES = [(0, 1), (0, 2), (1, 2), (1, 3)]
CLEAR = [0.7, 0.1, 0.1, 0.1]


@pytest.mark.parametrize(
    ("beta_hat", "why"),
    [
        ([[0.25] * 4, [0.4, 0.2, 0.2, 0.2], CLEAR], ""),
        ([[0.25] * 4, [0.28, 0.24, 0.24, 0.24]], r"(0,1) has 0.280, not much above the 0.250"),
        ([[0.25] * 4, [0.44, 0.42, 0.07, 0.07]], "(0,1) has 0.440 and (0,2) 0.420"),
        ([CLEAR] * 30 + [[0.1, 0.7, 0.1, 0.1]] * 9 + [CLEAR], "the leader changed in the last 2 of 40 epochs"),
        ([[0.25] * 4] * 36 + [[0.1, 0.7, 0.1, 0.1]] * 2 + [CLEAR] * 2, ""),
        ([[0.25] * 4] * 10 + [CLEAR] * 10, ""),
        ([[0.4, 0.2, 0.2, 0.2]] + [CLEAR] * 19, "(0,1) had 0.700 after 2 of 20 epochs"),
        ([[1.0]], ""),
    ],
)
def test_doubt(beta_hat: list[list[float]], why: str) -> None:
    assert doubt(PLACES, beta_hat).startswith(why) and bool(doubt(PLACES, beta_hat)) == bool(why)
