"""One table of modes: every combination runs or is refused, by name."""

from itertools import product

import pytest

from sphynx.errors import InputError
from sphynx.program.backends import BACKENDS, Backend
from sphynx.program.security import (
    ANSWER_KINDS,
    MODES,
    REVEALED,
    REVEALS,
    SECURITIES,
    Security,
    require_mode,
    require_reveal,
)


def test_every_combination_is_in_the_table() -> None:
    assert MODES.keys() == set(product(SECURITIES, BACKENDS))
    assert REVEALED.keys() == set(product(REVEALS, ANSWER_KINDS))


@pytest.mark.parametrize(("security", "backend"), MODES)
def test_a_mode_runs_or_is_refused(security: Security, backend: Backend) -> None:
    if not MODES[security, backend]:
        assert require_mode(security, backend, where="x") == security
        return
    with pytest.raises(InputError, match="needs garbled circuits"):
        require_mode(security, backend, where="x")


def test_a_margin_goes_with_a_label_alone() -> None:
    assert [require_reveal("label", 1.5), require_reveal("logits")] == ["label", "logits"]
    with pytest.raises(InputError, match="a margin is for labels"):
        require_reveal("logits", 1.5)
    with pytest.raises(InputError, match="'scores' is not what can be revealed"):
        require_reveal("scores")


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(InputError, match="'honest' is not a kind of security"):
        require_mode("honest", "gc", where="x")
