"""All kinds of errors are in one module, so that whoever calls Sphynx finds what to catch."""

from __future__ import annotations

import re
from pathlib import Path

from sphynx import errors

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
