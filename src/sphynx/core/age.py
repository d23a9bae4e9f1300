"""Check that the compiled core is as new as the sources beside it.

Only a checkout that is installed in place has such sources. There a `git pull` changes Python at once and the core when
it is built again; between them the two may disagree on a message's layout, and answers be wrong without an error.
"""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterator
from pathlib import Path

_SUFFIXES = (".h", ".cpp")
_NOT_COMPILED_IN = ("tests", "fuzz")


def warn_if_older(compiled: Path, sources: Path) -> None:
    made = compiled.stat().st_mtime
    if any(changed > made for changed in _changes(sources)):
        warnings.warn(
            "the compiled core is older than its sources, so private answers may be wrong: build it again "
            "(make test, or pip install -e .)",
            RuntimeWarning,
            stacklevel=3,
        )


def _changes(sources: Path) -> Iterator[float]:
    for folder, below, names in os.walk(sources):
        below[:] = [name for name in below if name not in _NOT_COMPILED_IN]
        for name in names:
            if name.endswith(_SUFFIXES):
                with contextlib.suppress(OSError):  # an editor's lock is a link to nothing
                    yield (Path(folder) / name).stat().st_mtime
