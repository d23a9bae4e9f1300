"""Flags made from a record: names, types, defaults and meanings; what cannot be typed has none."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
import typer
from typer.testing import CliRunner

from sphynx.cli.record_flags import typed_as, with_record_flags
from sphynx.cli.verbs import verbs
from sphynx.config import described, setting
from sphynx.design.settings import DesignSettings
from sphynx.search.settings import AllocationSettings, CellSettings, PlacementSettings
from sphynx.train.settings import TrainSettings

if TYPE_CHECKING:
    from torch.nn import Module

Form = Literal["text", "released"]


@dataclass(frozen=True, kw_only=True)
class Record:
    out: str | Path = field(metadata=described("The folder."))
    form: "Form | Module" = setting("text", "The form.")
    seeds: int = setting(1, "How many, with `settings`.", least=1)
    budget: int | str | None = setting(None, "50k.")
    settings: Mapping[str, Any] = setting({}, "A value.")
    files: Sequence[str | Path] = setting((), "Files.")
    progress: Callable[[str], None] | None = setting(None, "Hears of it.")


def called(*words: str, replaced: bool = False) -> tuple[Any, Any]:
    app, got = typer.Typer(), list[Record]()
    record: Any = Annotated[Record, {"out": setting(None, "Elsewhere.")}] if replaced else Record

    def verb(settings: Any) -> None:
        got.append(settings)

    verb.__annotations__["settings"] = record
    app.command()(with_record_flags(verb))
    return CliRunner().invoke(app, list(words)), got


def test_a_record_is_made_of_what_was_typed() -> None:
    words = ("-o", "x", "--form", "released", "--seeds", "3", "--budget", "1k", "--set", "epochs=2", "--set", "how=kl")
    _, got = called(*words, "--files", "a", "--files", "b")
    values = {"epochs": 2, "how": "kl"}
    expected = Record(
        out=Path("x"), form="released", seeds=3, budget="1k", settings=values, files=("a", "b"), progress=None
    )
    assert got == [expected]


def test_defaults_are_the_records() -> None:
    assert called("-o", "x")[1] == [Record(out=Path("x"))]
    assert called(replaced=True)[1][0].out is None


def test_wrong_values_are_refused_and_meanings_shown() -> None:
    for words in (("--form", "other"), ("--seeds", "0"), ("--progress", "x")):
        assert called("-o", "x", *words)[0].exit_code == 2
    shown = called("--help")[0].output
    assert "How many, with --set." in shown and "progress" not in shown


@pytest.mark.parametrize(
    ("hint", "typed"),
    [
        (int | None, int | None),
        (str | Path, Path),
        (float | str, str),
        (Callable[[str], None] | None, None),
        (Mapping[str, float], list[str] | None),
    ],
)
def test_types_that_can_be_typed(hint: Any, typed: Any) -> None:
    assert typed_as(hint) == typed


@pytest.mark.parametrize(
    ("verb", "record"),
    [
        ("train", TrainSettings),
        ("design", DesignSettings),
        ("search cells", CellSettings),
        ("search placement", PlacementSettings),
        ("search relus", AllocationSettings),
    ],
)
def test_every_setting_but_the_callback_has_a_flag(verb: str, record: Any) -> None:
    command = next(command for name, command, _ in verbs() if name == f"sphynx {verb}")
    flags = {parameter.name for parameter in command.params}
    assert set(record.__dataclass_fields__) - flags == {"progress"}
