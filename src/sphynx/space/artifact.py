"""Recognise what lies at a path by the names of its files, so that a verb that is given another stage's artifact can
name the command that helps. No torch.

    design.json --sphynx train--> run folder --sphynx compile--> compiled folder --sphynx serve-->
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from sphynx.errors import InputError
from sphynx.space.files import AnyDesign, is_design, load_any_design
from sphynx.space.json_file import read_json

Kind = Literal["design", "run", "unfinished", "seeds", "compiled", "foreign", "unknown"]

MODEL, DESIGN, PROGRAM = "model.safetensors", "design.json", "program.json"
CONFIGURATION, STAGES, CARD = "config.json", "stages.json", "card.json"
_UNFINISHED = ("its training is not finished", "Continue it: start it again as before, with `resume=True`.")
FOREIGN = (".onnx", ".pt2")  # networks from elsewhere


def kind_of(path: Path) -> Kind:
    if path.is_file():
        return _kind_of_file(path)
    if (path / PROGRAM).is_file():
        return "compiled"
    if (path / MODEL).is_file():
        return "run"
    if any(path.glob(f"seed-*/{MODEL}")):
        return "seeds"
    if (path / CONFIGURATION).is_file():
        return "unfinished"
    return "design" if (path / DESIGN).is_file() else "unknown"


def is_foreign(path: str | Path) -> bool:
    """Return whether the name is that of a network file from elsewhere."""
    return Path(path).suffix.lower() in FOREIGN


def refuse_uncompiled(path: Path) -> None:
    """Refuse another stage's artifact where a compiled folder is needed, and name the command that helps."""
    if (path / PROGRAM).is_file():
        return
    kind, name = kind_of(path), _name(path)
    told = {
        "run": (
            "it is a trained run that is not compiled yet",
            f"Compile it, then give compiled/{name}: sphynx compile {path} -o compiled/{name}",
        ),
        "foreign": (
            "it is a network that is not compiled yet",
            f"Compile it first: sphynx compile {path} -o compiled/{name} --calibrate DATA",
        ),
        "seeds": _describe_seeds(path, compiled=f"compiled/{name}"),
        "unfinished": _UNFINISHED,
        "design": (
            "it is a design without weights",
            f"Train it, then compile it: sphynx train {_design_file(path)} --data DATA -o runs/{name}; "
            f"sphynx compile runs/{name} -o compiled/{name}",
        ),
    }
    _refuse(path, kind, told)


def refuse_untrained(path: Path) -> None:
    """Refuse another stage's artifact where a run folder or its weights are needed, and name the command that helps."""
    if (path / MODEL).is_file():
        return
    kind, name = kind_of(path), _name(path)
    training = f"sphynx train {_design_file(path)} --data DATA -o runs/{name}"
    told = {
        "design": ("it is a design without weights", f"Train it first: {training}"),
        "compiled": (
            "it is already compiled",
            f"Give it as it is: sphynx serve {path} --keys KEYS, sphynx check {path}, sphynx app --local {path}",
        ),
        "seeds": _describe_seeds(path),
        "unfinished": _UNFINISHED,
        "foreign": (
            "it is a network from elsewhere, which only `sphynx compile` reads",
            f"Compile it, then give compiled/{name}: sphynx compile {path} --calibrate DATA -o compiled/{name}",
        ),
        "unknown": _unknown(path),
    }
    if path.name == DESIGN and (path.parent / MODEL).is_file():
        told["design"] = ("it is the design of a trained run", f"Give the folder: {path.parent}")
    _refuse(path, kind, told)


def read_design(path: Path) -> AnyDesign:
    """A design.json, where a network is to be made of it."""
    refuse_trained(path)
    return load_any_design(path)


def refuse_trained(path: Path) -> None:
    """Refuse another stage's artifact where a design is needed, and name the command that helps."""
    kind, name = kind_of(path), _name(path)
    design = path / DESIGN if path.is_dir() else path.parent / DESIGN
    designed = (design.parent / STAGES).is_file()  # by `sphynx design`, whose options are not known here
    going_on = (
        f"sphynx design OPTIONS -o {design.parent} --resume"
        if designed
        else f"sphynx train {design} --data DATA -o {design.parent} --resume"
    )
    of_a_run = (
        "it is a run, not a design",
        f"Train its design again: sphynx train {design} --data DATA -o runs/{name}-again; or continue it: {going_on}",
    )
    told = {
        "run": of_a_run,
        "unfinished": of_a_run,
        "seeds": (of_a_run[0], f"Train its design again: sphynx train {path}/seed-0/{DESIGN} --data DATA -o OTHER"),
        "compiled": ("it is compiled, not a design", "Give the design.json that it was trained from."),
        "foreign": ("it is a trained network, not a design", f"Compile it: sphynx compile {path} -o compiled/{name}"),
    }
    if path.is_dir():
        told["design"] = ("it is a folder", f"Give the design in it: {design}")
    _refuse(path, kind, told)


def _refuse(path: Path, kind: Kind, told: dict[str, tuple[str, str]]) -> None:
    if kind in told:
        what, remedy = told[kind]
        raise InputError(what, where=str(path), remedy=remedy)


def _kind_of_file(path: Path) -> Kind:
    if is_foreign(path):
        return "foreign"
    if path.name == MODEL or (path.suffix == Path(MODEL).suffix and (path.parent / DESIGN).is_file()):
        return "run"
    try:
        return "design" if is_design(read_json(path)) else "unknown"
    except InputError:
        return "unknown"


def _describe_seeds(path: Path, compiled: str = "") -> tuple[str, str]:
    first = min(path.glob(f"seed-*/{MODEL}"), default=path / "seed-0" / MODEL).parent
    remedy = f"sphynx compile {first} -o {compiled}" if compiled else f"{first}"
    return "it holds the runs of several seeds", f"Choose one of them: {remedy}"


def _unknown(path: Path) -> tuple[str, str]:
    accepted = f"Give a run folder, its {MODEL} or a model's name"
    if path.is_dir():
        return f"the folder holds no trained network ({MODEL})", f"{accepted}."
    exported = path.with_suffix(".pt2").name
    return (
        "it is not the weights of a trained run",
        f"{accepted}; sphynx compile also reads .onnx and .pt2 files. Export a torch module with "
        f'torch.export.save(torch.export.export(module.eval(), (example,)), "{exported}"), or compile it in Python: '
        "sphynx.compile_network(module, calibrate=DATA).",
    )


def _design_file(path: Path) -> Path:
    return path / DESIGN if path.is_dir() else path


def _name(path: Path) -> str:
    """Name a folder made from this path: runs/digits/model.safetensors and runs/digits are both called digits."""
    resolved = path.resolve()
    return resolved.parent.name if (resolved.parent / MODEL).is_file() else resolved.stem
