"""How many questions a client that changes its software needs for a network's weights, where labels alone are revealed.
With logits it takes 66 (tests/service/test_theft.py)."""

from __future__ import annotations

import numpy as np
import pytest
from tests.protocol.label_copy import largest_error
from tests.protocol.label_thief import LabelThief, victim

from sphynx.program.backends import Backend


@pytest.mark.parametrize("backend", ["gc", pytest.param("gmw", marks=pytest.mark.slow)])
def test_labels_give_all_weights_to_a_client_that_is_trusted(backend: Backend) -> None:
    """24 times as many questions: labels slow a thief, and only the checked mode stops it."""
    model = victim()
    thief = LabelThief(model, backend)
    stolen = thief.steal()
    assert thief.questions == 3 * 27 + 96 * 8 + 32 * (15 + 3) + 18 * 8 == 1569
    assert stolen.keys() == model.weights.keys() and sum(part.size for part in stolen.values()) == 149
    for name, weights in model.weights.items():
        np.testing.assert_array_equal(stolen[name], weights)


def test_labels_give_a_linear_classifier_to_a_client_that_changes_nothing() -> None:
    """Logits give all 51 numbers for 17 questions, labels give them to a hundredth for hundreds."""
    questions, error = np.median([largest_error(80, seed) for seed in range(5)], axis=0)
    assert 500 < questions < 800 and error < 0.02
