"""The chain that a model comes from, from data to weights, as its card states it; what a card does not know. No torch.

    "chain": {
        "needs": ["4P/data: ..."],                   what has to lie in a folder before, and where it comes from
        "commands": [["sphynx", "data", "pack", ...], ...],        run there one after the other; `python -m` by a clone
        "makes": "runs/diagnosis/candidate-0/seed-0",              the run that they end with
        "trainings": [...]                           as they were recorded: teachers first, the packed network last
    }

Cards of models that were packed before there were chains have none: `find_unknowns` says what that leaves open.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sphynx.errors import InputError
from sphynx.record import Record

CHAIN = "chain"
INSTALLED = "sphynx"  # the other programs of a chain are modules of a clone
# They make networks, and talk to nobody: a data set that has to be fetched is among the needs, for the user to fetch.
_VERBS = ("data", "design", "eval", "plan", "reduce", "search", "show", "train")
_DATA_VERBS = ("ls", "pack", "sample", "show")
_MODULE = tuple(shlex.split("python -m reproduction"))
_RAY = re.compile(r"-+r(ay?)?(=.*)?")  # a cluster runs code here; argparse takes the flag's first letters for it


@dataclass(frozen=True)
class Training(Record):
    """One network that was trained on the way, as its run recorded it."""

    network: str
    relus: int
    weights: str  # a digest of them in full precision; "file:" and the sha256 of their file where that alone is known
    taught_by: tuple[str, ...]  # the same of its teachers
    seed: int
    accuracy: float
    minutes: float
    device: str
    commit: str
    python: str
    cuda: str | None
    packages: Mapping[str, str | None]
    command: tuple[str, ...]
    teacher_weights: str | None = None  # the digest of all its teachers as one network, which it recorded itself


@dataclass(frozen=True)
class Chain(Record):
    needs: tuple[str, ...]
    commands: tuple[tuple[str, ...], ...]
    makes: str
    trainings: tuple[Training, ...]

    def __post_init__(self) -> None:
        """Refuse what could not be run elsewhere, or does anything but make networks: cards come from others."""
        for words in self.commands:
            package = (*words[:2], *(word.partition(".")[0] for word in words[2:3]))
            is_verb = words[:1] == (INSTALLED,) and words[1:2] and words[1] in _VERBS
            if not is_verb and package != _MODULE:
                _refuse(words, f"is neither a verb that makes networks ({', '.join(_VERBS)}) nor one of reproduction/")
            if words[:2] == (INSTALLED, "data") and words[2:3] and words[2] not in _DATA_VERBS:
                _refuse(words, f"is none of the verbs of `data` that fetch nothing ({', '.join(_DATA_VERBS)})")
            if any(_RAY.fullmatch(word) for word in words):
                _refuse(words, "runs on a cluster, which may run anything here")
            if any(_leads_outside(word) for word in words):
                _refuse(words, "names a path outside of the folder that it is run in")
        if not self.makes or _leads_outside(self.makes):
            _refuse((self.makes,), "is not a path below the folder that the commands are run in")


def _leads_outside(word: str) -> bool:
    """Judge a word of a command; what follows short flags, an equals sign or a comma counts as one.

    Short flags stand together, and the last one's value with them: which letters are flags is not known here."""
    is_short = word.startswith("-") and not word.startswith("--")
    ends = [word[start:] for start in range(1, len(word))] if is_short else [word]
    parts = [part for end in ends for part in re.split("[=,]", end)]
    return any(part.startswith(("/", "~")) or ".." in part.split("/") for part in parts)


def _refuse(words: tuple[str, ...], fault: str) -> None:
    raise InputError(
        f"`{' '.join(words)}` {fault}",
        where="the chain of commands",
        remedy="Write the commands as they are run in an empty folder, with relative paths.",
    )


def chain_of(card: Mapping[str, Any]) -> Chain | None:
    """Read the chain of a card; older ones have none."""
    return Chain.from_json(card[CHAIN], where=f"the card of {card['name']}") if CHAIN in card else None


def find_unknowns(card: Mapping[str, Any]) -> list[str]:
    """Say what a card leaves open of how its weights were made, one sentence for each."""
    if chain_of(card) is not None:
        return []
    made, commit = card["provenance"], card["provenance"]["commit"]
    if commit is None:
        code = f"The commit of its code is not known; a hash of the sources, {made['source_sha256']}, is."
    else:
        code = f"Its code was commit {commit.removesuffix('-dirty')} with changes that were not kept."
    found = [code] if commit is None or commit.endswith("-dirty") else []
    if card["teacher"] is not None:
        found.append("Its teacher was not kept; neither its commands nor a hash of its weights were recorded.")
    if card["recipe"].get("view_epochs"):
        found.append("It learnt from a file of its teacher's answers, which was not kept either.")
    return found
