"""Compiled networks, weights included, by a model's name. No torch for cells and streams, as all that are shipped are.

The package holds a model's program but not its integer weights, which follow from the model (`derive_weights`). They
are derived when they are first asked for and kept, with a copy of the program, as a compiled folder in the cache:

    ~/.cache/sphynx/programs/NAME-HASH/   program.json   weights.safetensors

The hash is that of all files they follow from, and of the version of Sphynx. What is damaged or incomplete there is
derived again. Where the cache cannot be written the weights last as long as the process. There is a folder per model
and version; those not used for 90 days (by the folder's own time) are deleted when another one is written.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from sphynx.errors import INSTALL_DESIGN, InputError, MissingPartError
from sphynx.program.convolve import Array
from sphynx.program.folder import WEIGHTS, load_compiled, load_program, save_program, save_weights
from sphynx.program.ir import Program
from sphynx.run.cache import cache_folder
from sphynx.version import __version__
from sphynx.zoo.shipped import SHIPPED, program_path

Tell = Callable[[str], None]

KEPT_SECONDS = 90 * 24 * 3600
FRESH = ".new-"
# As `compiled_folder` and tempfile call them: nothing else in the cache is ours to delete.
_OURS = re.compile(rf"[a-z0-9][a-z0-9.-]*-[0-9a-f]{{16}}|{re.escape(FRESH)}[a-z0-9_]{{8}}")


def load_by_name(compiled_or_name: str | Path, tell: Tell) -> tuple[Path, Program, dict[str, Array]]:
    """A compiled folder or a model's name: the folder that has its weights, the program and the weights."""
    folder = compiled_folder(compiled_or_name, tell)
    return folder, *load_compiled(folder)


def compiled_folder(compiled_or_name: str | Path, tell: Tell, models: Path = SHIPPED) -> Path:
    """A compiled folder as it is; for a model's name one that has its weights. `tell` hears of what takes seconds."""
    folder = program_path(compiled_or_name, models)
    if folder == Path(compiled_or_name) or (folder / WEIGHTS).is_file():
        return folder
    model = folder.parent
    kept = cache_folder() / "programs" / f"{model.name}-{_hash_of_files(model)}"
    with contextlib.suppress(OSError):
        os.utime(kept)  # it is in use; before it is read, so that a process which tidies sees that in time
    if _is_whole(kept):
        return kept
    tell(f"deriving the integer weights of {model.name}, which takes a few seconds")
    fresh = _fresh_folder(kept.parent)
    _derive(model, folder, fresh, kept)
    _tidy(kept.parent)
    if _rename(fresh, kept) or _is_whole(kept):  # the latter: another process was faster; its weights are the same
        return kept
    shutil.rmtree(kept, ignore_errors=True)  # only now: another process may have repaired it while this one derived
    if _rename(fresh, kept):
        return kept
    tell(f"{kept.parent} cannot be written: they will be derived again the next time")
    return fresh


def _tidy(cache: Path) -> None:
    """Delete old folders, each moved aside and looked at again: another process may have just asked for it."""
    oldest = time.time() - KEPT_SECONDS
    with contextlib.suppress(OSError):  # a cache that cannot be listed
        for entry in cache.iterdir():
            if _OURS.fullmatch(entry.name) and _is_old_folder(entry, oldest):
                aside = _fresh_folder(cache)
                if _rename(entry, aside) and not _is_old_folder(aside, oldest):
                    _rename(aside, entry)
                shutil.rmtree(aside, ignore_errors=True)  # not there any more if it went back


def _is_old_folder(entry: Path, oldest: float) -> bool:
    try:
        found = entry.lstat()
    except OSError:  # another process was faster
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_mtime < oldest


def _is_whole(kept: Path) -> bool:
    try:
        if not kept.is_dir():
            return False
        load_compiled(kept)
    except (InputError, OSError):  # the latter: a folder above it that may not be entered, such as another's home
        return False
    return True


def _rename(fresh: Path, kept: Path) -> bool:
    try:
        fresh.rename(kept)
    except OSError:
        return False
    return True


def _hash_of_files(model: Path) -> str:
    digest = hashlib.sha256(__version__.encode())
    for file in sorted(model.rglob("*")):
        if file.is_file():
            content = hashlib.sha256(file.read_bytes()).hexdigest()
            digest.update(f"{file.relative_to(model).as_posix()} {content}\n".encode())
    return digest.hexdigest()[:16]


def _fresh_folder(cache: Path) -> Path:
    """Make a folder in the cache if that can be written; readable by its owner only, deleted with the process."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        folder = tempfile.mkdtemp(prefix=FRESH, dir=cache)
    except OSError:
        folder = tempfile.mkdtemp(prefix="sphynx-program-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _derive(model: Path, folder: Path, out: Path, kept: Path) -> None:
    try:
        from sphynx.compiler.derive import derive_weights  # here: later starts do without the compiler

        program = load_program(folder)
        weights = derive_weights(model, folder, program)
    except ModuleNotFoundError as error:
        raise MissingPartError(
            f"deriving the weights of such a network (once) needs the package {error.name}",
            where=model.name,
            remedy=f"{INSTALL_DESIGN}, or copy {kept} from a machine that has it.",
        ) from None
    save_weights(out, program, weights)
    save_program(out, program)
