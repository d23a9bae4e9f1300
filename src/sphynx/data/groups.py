"""Which images belong together, such as those of one patient: by a rule on file names, or by a table.

    person\\d+|IM-\\d+     a regular expression, searched in CLASS/FILE: what it captures, else what it matches
    patients.csv         lines of FILE,GROUP; FILE is CLASS/FILE, or the file's name alone

Images of one group are all held out or none: a network that saw a patient in training would seem to know others. A file
that no rule speaks of is an error: it could belong to anybody.
"""

from __future__ import annotations

import csv
import hashlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from sphynx.errors import InputError

TABLE = ".csv"
_SHOWN = 3  # files without a group
_WHERE = "`groups`"


def group_numbers(rule: str, files: Sequence[Path], folder: Path) -> Tensor:
    """Number the group of every file, int64: equal groups have equal numbers in all folders.

    `folder` is that of the class folders.
    """
    find = _table(Path(rule)) if rule.endswith(TABLE) else _pattern(rule)
    found = [find(file.relative_to(folder).as_posix()) for file in files]
    missing = [str(file) for file, group in zip(files, found, strict=True) if not group]
    if missing:
        shown = ", ".join(missing[:_SHOWN]) + (f" and {len(missing) - _SHOWN:,} more" if len(missing) > _SHOWN else "")
        raise InputError(
            f"it names no group for {len(missing):,} of {len(files):,} files: {shown}",
            where=f"{_WHERE}: {rule}",
            remedy="Give a regular expression that finds a group in every CLASS/FILE, or a table with every file.",
        )
    return torch.tensor([_number(group) for group in found], dtype=torch.int64)


def split_by_groups(labels: Tensor, groups: Tensor, fraction: float, seed: int) -> tuple[Tensor, Tensor]:
    """Two ascending index lists; the second holds about `fraction` of each class, in whole groups.

    Groups come in a random order, and one is held out where that brings the classes nearer to their share.
    """
    if not 0 <= fraction <= 1:
        raise ValueError(f"a fraction must be between 0 and 1, not {fraction}")
    kinds = labels.cpu().numpy()
    _, of_image = np.unique(groups.cpu().numpy(), return_inverse=True)
    counts = np.zeros((of_image.max(initial=-1) + 1, kinds.max(initial=0) + 1))
    np.add.at(counts, (of_image, kinds), 1)
    missing, taken = fraction * counts.sum(0), np.zeros(len(counts), bool)
    for group in np.random.default_rng(seed).permutation(len(counts)):
        if 2 * missing @ counts[group] >= counts[group] @ counts[group]:
            taken[group], missing = True, missing - counts[group]
    held_out = taken[of_image]
    return torch.from_numpy(np.flatnonzero(~held_out)), torch.from_numpy(np.flatnonzero(held_out))


def _pattern(rule: str) -> Callable[[str], str]:
    try:
        pattern = re.compile(rule)
    except re.error as error:
        raise InputError(
            f"it is not a valid regular expression ({error})",
            where=f"{_WHERE}: {rule}",
            remedy="Write one such as person\\d+, or name a table that ends in .csv.",
        ) from None

    def find(name: str) -> str:
        match = pattern.search(name)
        if match is None:
            return ""
        captured = [part for part in match.groups() if part is not None]
        return "\0".join(captured) or match[0]

    return find


def _table(path: Path) -> Callable[[str], str]:
    try:
        with path.open(newline="") as file:
            rows = [row for row in csv.reader(file) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(
            f"the table cannot be read ({error})", where=f"{_WHERE}: {path}", remedy="Give lines of FILE,GROUP."
        ) from error
    if any(len(row) != 2 for row in rows):
        raise InputError(
            "a line does not have two fields", where=f"{_WHERE}: {path}", remedy="Give lines of FILE,GROUP."
        )
    groups = {name.strip(): group.strip() for name, group in rows}
    return lambda name: groups.get(name) or groups.get(name.rsplit("/", 1)[-1], "")


def _number(group: str) -> int:
    return int.from_bytes(hashlib.sha256(group.encode(errors="surrogateescape")).digest()[:8], "big") >> 1
