"""Trained networks and teachers by a model's name or a path, and how a finished run becomes a model.

    network = load_named("sphynx-cifar100-25k")

    sphynx_models/NAME/   model.safetensors (8-bit kernels)   design.json   normalisation.json (with the class names)
                          card.json: how it was trained, how good it is, where it comes from
                          program/: made by `sphynx compile NAME --derivable`, after packing

A card's numbers are those that the run itself wrote down; nothing is measured when it is packed.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sphynx.errors import InputError
from sphynx.network.build import AnyNetwork
from sphynx.network.model import (
    NORMALISATION,
    count_parameters,
    load_model,
    load_normalisation,
    save_model,
)
from sphynx.network.trained import TrainedNetwork, load_trained
from sphynx.space.artifact import CARD, CONFIGURATION, MODEL
from sphynx.space.files import account_of_any
from sphynx.train.job import Job
from sphynx.train.runs import AUTO_TEACHER, teacher_for
from sphynx.zoo.shipped import FORMAT, SHIPPED, model_path, read_object

MAX_BYTES = 24_000_000  # of one model's weights: they travel with the package


def load_named(run_or_name: str | Path, folder: Path = SHIPPED) -> TrainedNetwork:
    """Load a run folder, its weights file or a model's name."""
    return load_trained(model_path(run_or_name, folder))


def named_teacher(run_or_name: str, job: Job, folder: Path = SHIPPED) -> AnyNetwork:
    """Load the teacher that a run folder or a model's name says; train one for `auto`."""
    return teacher_for(run_or_name if run_or_name == AUTO_TEACHER else str(model_path(run_or_name, folder)), job)


def pack(run: Path, name: str, folder: Path = SHIPPED, evaluation: Mapping[str, Any] | None = None) -> Path:
    """From the folder of one finished training run. `evaluation` is what `sphynx eval --json` printed of it."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]*", name):
        raise InputError(
            f"{name!r} is not a valid name", where="`name`", remedy="Use lower-case letters, digits, dots and dashes."
        )
    target = folder / name
    if target.exists():
        raise InputError("a model of this name already exists", where=str(target), remedy="Give another name.")
    network = load_model(run)
    load_normalisation(run)
    card = _card(run, name, network, evaluation)
    temporary = folder / f".{name}.new"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    try:
        save_model(temporary, network, compact=True)
        size = (temporary / MODEL).stat().st_size
        if size > MAX_BYTES:
            raise InputError(
                f"its weights take {size:,} bytes, more than {MAX_BYTES:,}",
                where=str(run),
                remedy="Only small models can be packed: use fewer channels.",
            )
        shutil.copyfile(run / NORMALISATION, temporary / NORMALISATION)
        (temporary / CARD).write_text(json.dumps(card, indent=2) + "\n")
        return temporary.rename(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)  # what was refused leaves nothing behind


def _card(run: Path, name: str, network: AnyNetwork, evaluation: Mapping[str, Any] | None) -> dict[str, Any]:
    result, config, environment = (
        read_object(run / file) for file in ("result.json", CONFIGURATION, "environment.json")
    )
    summary = _summary_of_seeds(run)
    try:
        return {
            "format": FORMAT,
            "name": name,
            "accuracy": result["accuracy"],
            "top5": result["top5"],
            "test_images": result["test_images"],
            "evaluation": None if evaluation is None else {k: v for k, v in evaluation.items() if k != "run"},
            "seed": config["seed"],
            "all_seeds": None if summary is None else {key: summary[key] for key in ("seeds", "accuracies")},
            "relus": account_of_any(network.design).total.relus,
            "parameters": count_parameters(network),
            "data": config["data"],
            "recipe": config["recipe"],
            "teacher": config["teacher"],
            "minutes": result["minutes"],
            "device": result["device"],
            "provenance": {
                key: environment[key] for key in ("sphynx", "source_sha256", "commit", "python", "packages", "command")
            },
        }
    except KeyError as error:
        raise InputError(
            f"the run's files do not say {error}", where=str(run), remedy="Give the folder of one finished training."
        ) from None


def _summary_of_seeds(run: Path) -> dict[str, Any] | None:
    """Read the summary of the seeds that this run is one of, where it is."""
    file = run.resolve().parent / "result.json"
    if not (run.resolve().name.startswith("seed-") and file.is_file()):
        return None
    summary = read_object(file)
    return summary if "accuracies" in summary else None
