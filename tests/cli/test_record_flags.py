"""Flags made from records: names, types, defaults and meanings; values as records take them; what cannot be typed."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
import typer
from typer.testing import CliRunner

from sphynx.cli.main import app
from sphynx.cli.record_flags import typed_as, with_record_flags
from sphynx.cli.verbs import verbs
from sphynx.compiler.precision import Precision
from sphynx.compiler.settings import CompileSettings
from sphynx.config import described, setting
from sphynx.design.settings import DesignSettings
from sphynx.errors import InputError
from sphynx.program.cost.deployment import Deployment
from sphynx.program.cost.link import LINKS
from sphynx.search.settings import AllocationSettings, CellSettings, PlacementSettings
from sphynx.service.settings import ClientSettings, Limits, ServerSettings
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


def called(*words: str, record: Any = Record) -> tuple[Any, list[Any]]:
    """Run a verb with a record; return its result and the record that it received."""
    verbs, got = typer.Typer(), list[Any]()

    def verb(settings: Any) -> None:
        got.append(settings)

    verb.__annotations__["settings"] = record
    verbs.command()(with_record_flags(verb))
    return CliRunner().invoke(verbs, list(words)), got


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
    assert called(record=Annotated[Record, {"out": setting(None, "Elsewhere.")}])[1][0].out is None
    for record in (Limits, Deployment, Precision, CompileSettings):
        assert called(record=record)[1] == [record()]


def test_a_flag_may_be_written_otherwise_than_its_field() -> None:
    words = ("--keys", "k", "--proxy-from", "10.0.0.0/8", "--proxy-from", "fd00::/8")
    expected = ServerSettings(keys=Path("k"), proxy_from=("10.0.0.0/8", "fd00::/8"), metrics="127.0.0.1:9464")
    assert called(*words, record=ServerSettings)[1] == [expected]
    assert called("--quota", "500M", record=Limits)[1] == [Limits(quota_bytes=500 << 20)]
    words = ("--link", "wan", "--weight-memory", "8G", "--backend", "gc")
    expected_deployment = Deployment(backend="gc", link=LINKS["wan"], memory_bytes=8 << 30)
    assert called(*words, record=Deployment)[1] == [expected_deployment]


def test_auto_is_nothing_given_unless_the_field_takes_it() -> None:
    assert called("--backend", "auto", "--weight-memory", "auto", record=Deployment)[1] == [Deployment()]
    assert called("-o", "x", "--teacher", "auto", record=TrainSettings)[1][0].teacher == "auto"


def test_wrong_values_are_refused_and_meanings_shown() -> None:
    for words in (("--form", "other"), ("--seeds", "0"), ("--progress", "x")):
        assert called("-o", "x", *words)[0].exit_code == 2
    shown = called("--help")[0].output
    assert "How many, with --set." in shown and "progress" not in shown


def test_a_value_that_cannot_be_read_names_its_flag(tmp_path: Any) -> None:
    for flag, value in (("--mean", "a"), ("--std", "1,b"), ("--link", "fast"), ("--weight-memory", "8X")):
        with pytest.raises(InputError) as refused:
            app(["compile", "mine.onnx", "-o", str(tmp_path / "out"), flag, value])
        assert refused.value.where == flag


@pytest.mark.parametrize(
    ("hint", "typed"),
    [
        (int | None, int),
        (str | Path, Path),
        (float | str, str),
        (Callable[[str], None] | None, None),
        (Mapping[str, float], list[str]),
        (tuple[str, ...], list[str]),
    ],
)
def test_types_that_can_be_typed(hint: Any, typed: Any) -> None:
    assert typed_as(hint) == typed


@pytest.mark.parametrize(
    ("verb", "records"),
    [
        ("train", [TrainSettings]),
        ("design", [DesignSettings]),
        ("search cells", [CellSettings]),
        ("search placement", [PlacementSettings]),
        ("search relus", [AllocationSettings]),
        ("compile", [CompileSettings, Precision, Deployment]),
        ("infer", [ClientSettings]),
        ("serve", [ServerSettings, Limits]),
    ],
)
def test_every_setting_has_a_flag_but_callbacks_and_those_declared_without(verb: str, records: list[Any]) -> None:
    command = next(command for name, command, _ in verbs() if name == f"sphynx {verb}")
    flags = {parameter.name for parameter in command.params}
    fields: list[dataclasses.Field[Any]] = [one for record in records for one in dataclasses.fields(record)]
    without = {one.name for one in fields if one.name == "progress" or one.metadata.get("flag", "") is None}
    assert {one.name for one in fields} - flags == without
    assert all(one.metadata["meaning"] for one in fields)
