"""A model made again from the chain on its card, in an empty folder, and its accuracy beside the card's."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sphynx.errors import InputError, SphynxError
from sphynx.record import Record
from sphynx.train.results import RESULT
from sphynx.zoo import shipped
from sphynx.zoo.chain import INSTALLED, Chain, chain_of, find_unknowns

_ENVIRONMENT = "environment.json"
_STDERR = 2  # where commands print, since what is printed at the end may be read by a program


@dataclass(frozen=True)
class Rebuilt(Record):
    """`run` is the folder that the commands ended with; accuracies are of the test images, final epoch; minutes are of
    all trainings in the folder."""

    name: str
    accuracy: float
    accuracy_on_card: float
    minutes: float
    device: str
    commit: str | None
    run: str = ""


def load_chain(name: str, folder: Path | None = None) -> Chain:
    """Load the chain of a model, from data to weights."""
    card = shipped.load_card(name, folder or shipped.SHIPPED)
    chain = chain_of(card)
    if chain is None:
        raise InputError(
            f"its card has no chain of commands. {' '.join(find_unknowns(card))}",
            where=name,
            remedy="Train it again as docs/stream.md or docs/training.md say, and pack it with its teachers.",
        )
    return chain


def rebuild_model(
    name: str, out: Path, folder: Path | None = None, tell: Callable[[str], None] = lambda _: None
) -> Rebuilt:
    """Run a model's chain in the folder `out`, in which what the chain needs has to lie. Its commands run as they
    stand, with this Python; `tell` hears each before it runs. After an interruption they run again: a training that
    resumes goes on where it stopped."""
    chain = load_chain(name, folder)
    _check_needs(chain, out)
    for words in chain.commands:
        tell(shlex.join(words))
        ran = subprocess.run(_with_this_python(words), cwd=out, env=_with_clone(words), stdout=_STDERR, check=False)
        if ran.returncode:
            raise SphynxError(
                f"`{shlex.join(words)}` ended with exit code {ran.returncode}",
                where=str(out),
                remedy="Read its output above, then give the same folder again: training continues where it stopped.",
            )
    return _compare(name, out, out / chain.makes, float(shipped.load_card(name, folder or shipped.SHIPPED)["accuracy"]))


def _compare(name: str, out: Path, run: Path, accuracy_on_card: float) -> Rebuilt:
    result = shipped.read_object(run / RESULT)
    minutes = sum(float(shipped.read_object(one)["minutes"]) for one in out.rglob(RESULT))
    commit = shipped.read_object(run / _ENVIRONMENT)["commit"]
    accuracy, device = float(result["accuracy"]), result["device"]
    return Rebuilt(name, accuracy, accuracy_on_card, round(minutes, 2), device, commit, str(run))


def _check_needs(chain: Chain, out: Path) -> None:
    missing = [need for need in chain.needs if not (out / need.partition(": ")[0]).exists()]
    if missing:
        raise InputError(
            f"it needs {'; '.join(missing)}", where=str(out), remedy="Put it there, or link it, under that name."
        )
    if (out / chain.makes / RESULT).exists():
        raise InputError(
            f"{chain.makes} is already finished", where=str(out), remedy="Rebuild in a folder that holds only the data."
        )


def _with_this_python(words: tuple[str, ...]) -> list[str]:
    """Run the verbs of this very Sphynx, whatever PATH or the folder has."""
    if words[0] == INSTALLED:
        return [sys.executable, "-P", "-m", INSTALLED, *words[1:]]
    return [sys.executable, "-P", *words[1:]]


def _with_clone(words: tuple[str, ...]) -> dict[str, str]:
    """Let modules of a clone be found, where the chain has some: from the folder that this is run in. Paths in
    PYTHONPATH may be relative to it."""
    given = [str(Path(path).resolve()) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    if words[0] == INSTALLED:
        return {**os.environ, "PYTHONPATH": os.pathsep.join(given)}
    module = words[2].partition(".")[0]
    if not (Path.cwd() / module).is_dir():
        raise InputError(
            f"the chain runs {module}, which is not installed", where=str(Path.cwd()), remedy="Run it in a clone."
        )
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path.cwd()), *given])}
