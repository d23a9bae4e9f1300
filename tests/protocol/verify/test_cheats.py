"""Every way in which a client may depart from the protocol is refused before any logits are sent.

A few attempts of each here; `python -m tests.protocol.verify.refusals --times 1000` makes more.
"""

from __future__ import annotations

import pytest
from tests.protocol.verify.attempts import attempt, is_honest
from tests.protocol.verify.cheats import CHEATS, PROGRAM, WEIGHTS, Cheat

from sphynx.protocol.linear import ServerModel
from sphynx.protocol.verify.plan import plan_check

TIMES = 2


@pytest.fixture(scope="module")
def model() -> ServerModel:
    return ServerModel(PROGRAM, WEIGHTS, check=plan_check(PROGRAM, WEIGHTS))


@pytest.mark.parametrize(("bundles", "batch"), [(1, 1), (2, 1), (1, 2)])
def test_an_honest_client_gets_its_answers(bundles: int, batch: int, model: ServerModel) -> None:
    outcome = attempt(model, Cheat(lambda *_: None, bundles, batch), seed=0)
    assert not outcome.is_refused and is_honest(model, outcome, batch)


@pytest.mark.parametrize("name", CHEATS)
def test_a_client_that_cheats_is_refused(name: str, model: ServerModel) -> None:
    for seed in range(TIMES):
        outcome = attempt(model, CHEATS[name], seed)
        assert outcome.is_refused
        assert outcome.logits_bytes == 0 and outcome.answers is None
