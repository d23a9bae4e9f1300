"""The trained models of the distribution sphynx-models: names, cards and folders. No torch: `pretrained` reads
weights.

    sphynx_models/NAME/           design.json   model.safetensors   normalisation.json   card.json
    sphynx_models/NAME/program/   the same network compiled: program.json   corrections.safetensors

Wherever a run folder is asked for, `model_path` also takes a model's name; `program_path` where a public program is.
Where the integer weights are needed too, `by_name` derives them.
"""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sphynx.errors import InputError
from sphynx.space.artifact import CARD

FORMAT = "sphynx-model/1"
PROGRAM = "program"
INSTALL = "pip install ./models in a clone of Sphynx"


def _installed_folder() -> Path:
    """The package's folder; without it, a path at which nothing lies."""
    spec = find_spec("sphynx_models")
    return Path(spec.origin).parent if spec is not None and spec.origin else Path("sphynx_models is not installed")


SHIPPED = _installed_folder()


def model_names(folder: Path = SHIPPED) -> list[str]:
    return sorted(card.parent.name for card in folder.glob(f"[!.]*/{CARD}"))


def model_path(run_or_name: str | Path, folder: Path = SHIPPED) -> Path:
    """Find a trained network that is given as a run folder, a weights file or a model's name."""
    path = Path(run_or_name)
    return path if path.exists() else folder_of(str(run_or_name), folder)


def program_path(compiled_or_name: str | Path, folder: Path = SHIPPED) -> Path:
    """Find a program that is given as a compiled folder or as a model's name."""
    path = Path(compiled_or_name)
    if path.exists():
        return path
    program = folder_of(str(compiled_or_name), folder) / PROGRAM
    if not program.is_dir():
        raise InputError(
            "the model has no program, so it cannot be used where a compiled folder is asked for",
            where=str(compiled_or_name),
            remedy=f"Make it once: sphynx compile {compiled_or_name} -o {program} --derivable",
        )
    return program


def folder_of(name: str, folder: Path = SHIPPED) -> Path:
    names = model_names(folder)
    if name not in names:
        raise InputError(
            "there is no such folder, and no model of that name",
            where=name,
            remedy=f"Give a folder, or a model: {', '.join(names)}."
            if names
            else f"Give a folder, or install the models: {INSTALL}.",
        )
    return folder / name


def load_card(name: str, folder: Path = SHIPPED) -> dict[str, Any]:
    file = folder_of(name, folder) / CARD
    card = read_object(file)
    if card.get("format") != FORMAT:
        raise InputError(
            f"its format is {card.get('format')!r}; this version reads {FORMAT!r}",
            where=str(file),
            remedy="Install Sphynx and its models from one clone (pip install . ./models), or pack the model again.",
        )
    return card


def warning_of(name: str) -> str:
    """Return what the card of an installed model says that it is not for; nothing for other networks."""
    return str(load_card(name).get("warning", "")) if name in model_names() else ""


def read_object(file: Path, remedy: str = "Give the folder of one finished training.") -> dict[str, Any]:
    try:
        found = json.loads(file.read_text())
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"it cannot be read ({error})", where=str(file), remedy=remedy) from None
    if not isinstance(found, dict):
        raise InputError("it is not a JSON object", where=str(file), remedy="Run the stage again.")
    return found
