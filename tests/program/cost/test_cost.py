"""Counts from shapes against the protocol's own worked numbers, and against counting by hand."""

import pytest

from sphynx.program.cost.cost import layer_costs, relu_cost, total_cost
from tests.program.programs import small_program


@pytest.mark.parametrize(("w", "k", "nbytes"), [(32, 32, 27), (40, 40, 34), (32, 64, 35), (64, 64, 55)])
def test_gmw_bytes_are_those_of_the_worked_examples(w: int, k: int, nbytes: int) -> None:
    assert relu_cost(640, w, k, 8).gmw_online_bytes == pytest.approx(640 * nbytes, abs=640)


def test_gc_counts_are_those_of_the_worked_example() -> None:
    cost = relu_cost(64, 34, 40, 8)
    assert cost.gc_ands == 64 * (33 + 25 + 39)
    assert cost.gc_online_bytes == 64 * (16 * 34 + 5)
    assert cost.gc_messages == 2 and cost.gmw_messages == 4


def test_a_range_that_truncation_uses_up_counts_as_a_wider_one() -> None:
    """The protocol computes it so: a bit must be left beside the sign."""
    assert relu_cost(64, 9, 40, 8) == relu_cost(64, 10, 40, 8)
    assert relu_cost(64, 1, 40, 0) == relu_cost(64, 2, 40, 0)


def test_a_program_is_the_sum_of_its_maps() -> None:
    program = small_program()
    costs = dict(layer_costs(program))
    assert list(costs) == ["first", "link", "second", "logits"]
    assert costs["first"].macs == 3 * 25 * 2 * 6
    assert costs["second"].macs == 2 * 6 * (3 * 9 + 2)
    assert costs["first"].relus == 75 and costs["link"].gc_ands == costs["link"].gc_messages == 0
    assert all(cost.he_products >= 1 and cost.he_replies >= 1 for cost in costs.values())
    assert total_cost(program).macs == sum(cost.macs for cost in costs.values())
