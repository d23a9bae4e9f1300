"""The chain of a model that is packed: what its run and those of its teachers recorded, and the commands of all.

The commands are those that the runs recorded, or those of a file that says them better, one a line, as a shell reads
them; its lines that begin with # say what has to lie in the folder before: `# 4P/data: from github.com/...`.

A teacher's folder may lack its weights, which are large: what it wrote of them itself is enough, or else a file
model.safetensors.sha256, as sha256sum writes it. Of the latter the student recorded nothing that could be compared.
"""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sphynx.data.class_order import numbers_among
from sphynx.errors import InputError
from sphynx.network.build import AnyNetwork, with_class_order
from sphynx.network.ensemble import Ensemble, Teacher
from sphynx.network.trained import load_model, load_trained
from sphynx.space.artifact import CONFIGURATION, DESIGN, MODEL, read_design
from sphynx.train.job import TAUGHT_BY, TEACHER_WEIGHTS
from sphynx.train.results import RESULT, TrainResult
from sphynx.train.views import weights_digest
from sphynx.zoo.chain import Chain, Training
from sphynx.zoo.shipped import read_object

ENVIRONMENT = "environment.json"
_MOST_TEACHERS = 6  # of which all orders are tried
_OF_FILE = "file:"


def read_chain(run: Path, teachers: Sequence[Path], commands: Path | None = None, makes: str = "") -> Chain:
    """Collect the chain of a run. Every teacher's run is found by the hash of weights that its student recorded."""
    trainings: list[Training] = []
    left = list(teachers)
    _collect(run, list(teachers), left, trainings)
    if left:
        raise InputError(
            "it taught neither this network nor its teachers: no run has the hash of its weights",
            where=str(left[0]),
            remedy="Give the runs that taught it, and no others, as `teacher`.",
        )
    recorded = dict.fromkeys(training.command for training in trainings)  # without repetitions, in order
    needs, listed = ((), tuple(recorded)) if commands is None else _read_commands(commands)
    return Chain(needs, listed, makes or str(run), tuple(trainings))


def require_commit(environment: dict[str, Any], run: Path) -> str:
    """Return the commit of a run's code, which has to be a clean one."""
    commit = environment.get("commit")
    if not commit or str(commit).endswith("-dirty"):
        raise InputError(
            f"its code is not that of a commit, but of {commit}" if commit else "its code has no commit",
            where=str(run),
            remedy="Commit, then train again; set SPHYNX_COMMIT where the sources are a copy without their history.",
        )
    return str(commit)


def _collect(run: Path, teachers: list[Path], left: list[Path], trainings: list[Training]) -> None:
    """Add the trainings of a run's teachers, then its own, unless they are there."""
    result = TrainResult.from_json(read_object(run / RESULT), where=str(run / RESULT))
    config, environment = read_object(run / CONFIGURATION), read_object(run / ENVIRONMENT)
    commit = require_commit(environment, run)
    taught_by = _teachers_of(run, config, [teacher for teacher in teachers if teacher != run])
    for teacher in taught_by:
        if teacher in left:
            left.remove(teacher)
        _collect(teacher, teachers, left, trainings)
    digest = _digest_of(run)
    if any(training.weights == digest for training in trainings):
        return
    design = config["design"]
    trainings.append(
        Training(
            network=str(design.get("name") or design["format"]).partition("/")[0].removeprefix("sphynx-"),
            relus=read_design(run / DESIGN).account.total.relus,
            weights=digest,
            taught_by=tuple(_digest_of(teacher) for teacher in taught_by),
            seed=result.seed,
            accuracy=result.accuracy,
            minutes=result.minutes,
            device=result.device,
            commit=commit,
            python=environment["python"],
            cuda=environment["cuda"],
            packages=environment["packages"],
            command=tuple(environment["command"]),
            teacher_weights=config.get(TEACHER_WEIGHTS),
        )
    )


def _digest_of(run: Path) -> str:
    listed = run / f"{MODEL}.sha256"
    if (run / MODEL).is_file():
        return weights_digest(load_model(run))
    if written := TrainResult.from_json(read_object(run / RESULT), where=str(run / RESULT)).weights:
        return written
    if listed.is_file():
        return _OF_FILE + listed.read_text().split()[0]
    raise InputError(
        "neither its weights nor a hash of them is there",
        where=str(run),
        remedy=f"Give the run's whole folder, or put sha256sum's line about {MODEL} into {listed.name} there.",
    )


def _teachers_of(run: Path, config: dict[str, Any], teachers: Sequence[Path]) -> tuple[Path, ...]:
    """Find who taught a run: some of the runs that were given, in the order that has the hash it recorded."""
    if config["teacher"] is None:
        return ()
    number, wanted = int(config.get("teachers", 1)), config.get(TEACHER_WEIGHTS)
    if wanted is None:
        raise InputError("it does not say which weights taught it", where=str(run), remedy="Train it again.")
    digests = {_digest_of(teacher): teacher for teacher in teachers}
    each = config.get(TAUGHT_BY, [wanted])
    if all(digest in digests for digest in each):
        return tuple(digests[digest] for digest in each)
    if len(digests) == number and all(digest.startswith(_OF_FILE) for digest in digests):
        return tuple(digests.values())
    teachers = [teacher for teacher in teachers if (teacher / MODEL).is_file()]
    names = load_trained(run).class_names
    for chosen in itertools.permutations(teachers[:_MOST_TEACHERS], number):
        members = [_in_order(teacher, names) for teacher in chosen]
        teacher: Teacher = Ensemble(members) if number > 1 else members[0]
        if weights_digest(teacher) == wanted:
            return tuple(chosen)
    raise InputError(
        f"it was taught by {number} network{'s' * (number > 1)} of hash {wanted[:16]}..., "
        "which the given runs do not have",
        where=str(run),
        remedy="Give the runs of all its teachers, and of theirs, as `teacher`.",
    )


def _in_order(teacher: Path, class_names: tuple[str, ...]) -> AnyNetwork:
    """Load a teacher as its student saw it: with its logits in the order of the student's classes."""
    trained = load_trained(teacher)
    numbers = numbers_among(class_names, trained.class_names, where=str(teacher), knower="teacher")
    return trained.module if numbers is None else with_class_order(trained.module, numbers)


def _read_commands(file: Path) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    try:
        lines = [line.strip() for line in file.read_text().replace("\\\n", " ").splitlines() if line.strip()]
        commands = tuple(tuple(shlex.split(line)) for line in lines if not line.startswith("#"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"the commands cannot be read ({error})", where=str(file), remedy="Write one command a line."
        ) from None
    return tuple(line.removeprefix("#").strip() for line in lines if line.startswith("#")), commands
