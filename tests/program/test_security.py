"""One table of modes: every combination runs or is refused, by name."""

from itertools import product

import pytest

from sphynx.errors import InputError
from sphynx.program.backends import BACKENDS, Backend
from sphynx.program.security import MODES, SECURITIES, Security, require_mode


def test_every_combination_is_in_the_table() -> None:
    assert MODES.keys() == set(product(SECURITIES, BACKENDS))


@pytest.mark.parametrize(("security", "backend"), MODES)
def test_a_mode_runs_or_is_refused(security: Security, backend: Backend) -> None:
    if not MODES[security, backend]:
        assert require_mode(security, backend, where="x") == security
        return
    with pytest.raises(InputError, match="needs garbled circuits"):
        require_mode(security, backend, where="x")


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(InputError, match="'honest' is not a kind of security"):
        require_mode("honest", "gc", where="x")
