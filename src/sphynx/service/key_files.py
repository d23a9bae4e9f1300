"""Files of keys: whole or not there at all, and never readable by others, not even while they are written."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from sphynx.errors import InputError


@contextlib.contextmanager
def whole_folder(home: Path) -> Iterator[Path]:
    """A folder that is filled first and then gets its name: where that fails, there is none, and it can be tried again.
    Half an authority could neither be used nor made anew."""
    try:
        made = Path(tempfile.mkdtemp(prefix=f"{home.name}.", dir=home.parent))
    except OSError as error:
        raise not_created(home, error) from None
    try:
        yield made
        made.rename(home)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise


def make_private_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise not_created(folder, error) from None


def not_created(folder: Path, error: OSError) -> InputError:
    """Explain that a folder cannot be made."""
    return InputError(f"cannot be created ({error.strerror})", where=str(folder), remedy="Choose another.")


def write_private(path: Path, content: bytes) -> None:
    """Whole or not at all, and never readable by others, not even while it is written."""
    temporary = path.with_name(path.name + ".new")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
