"""All kinds of errors are in one module, so that whoever calls Sphynx finds what to catch."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest

from sphynx import errors
from sphynx.errors import InputError, InterruptedWorkError, SphynxError

SOURCES = Path(errors.__file__).parent


def test_no_other_module_defines_a_kind_of_sphynx_error() -> None:
    kinds = {name for name, kind in vars(errors).items() if isinstance(kind, type)}
    definition = re.compile(rf"^class \w+\((?:{'|'.join(kinds)})\):", re.MULTILINE)
    elsewhere = [file for file in SOURCES.rglob("*.py") if file != Path(errors.__file__)]
    assert not [file for file in elsewhere if definition.search(file.read_text())]


def test_every_kind_is_told_in_the_modules_first_lines() -> None:
    kinds = [
        name for name, kind in vars(errors).items() if isinstance(kind, type) and kind.__module__ == "sphynx.errors"
    ]
    assert len(kinds) > 10
    assert not [name for name in kinds if not re.search(rf"^ *{name}\b", errors.__doc__ or "", re.MULTILINE)]


@pytest.mark.parametrize("error", [InputError("a", where="b", remedy="c"), InterruptedWorkError(where="epoch 3")])
def test_an_error_comes_back_from_another_process_with_its_remedy(error: SphynxError) -> None:
    """A pool whose worker's error cannot be read is broken, and nobody learns why."""
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and str(again) == str(error)
    assert (again.what, again.where, again.remedy) == (error.what, error.where, error.remedy)
