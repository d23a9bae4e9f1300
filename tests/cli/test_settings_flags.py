"""Flags made from a settings record: each field once, its default as it is typed, its value as the record takes it."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from sphynx.cli.main import app
from sphynx.cli.settings_flags import with_settings
from sphynx.cli.verbs import verbs
from sphynx.compiler.precision import Precision
from sphynx.compiler.settings import CompileSettings
from sphynx.errors import InputError
from sphynx.program.cost.deployment import Deployment
from sphynx.service.settings import ClientSettings, Limits, ServerSettings

RECORDS: dict[str, tuple[type, ...]] = {
    "sphynx compile": (CompileSettings, Precision, Deployment),
    "sphynx infer": (ClientSettings,),
    "sphynx serve": (ServerSettings, Limits),
}


@pytest.mark.parametrize("verb", RECORDS)
def test_every_field_is_a_flag_unless_it_is_declared_without_one(verb: str) -> None:
    command = next(command for name, command, _ in verbs() if name == verb)
    found = {parameter.name for parameter in command.params}
    fields: list[dataclasses.Field[Any]] = [one for record in RECORDS[verb] for one in dataclasses.fields(record)]
    assert {field.name for field in fields if field.metadata.get("flag", "") is not None} <= found
    assert not {field.name for field in fields if field.metadata.get("flag", "") is None} & found
    assert all(field.metadata["meaning"] for field in fields)


def given(*words: str) -> tuple[dict[str, Any], ...]:
    """The values that a verb with all of these records receives."""
    received: list[dict[str, Any]] = []

    @with_settings(ServerSettings, Limits)
    def serve(settings: dict[str, Any], limits: dict[str, Any]) -> None:
        received.extend((settings, limits))

    verb = typer.Typer()
    verb.command()(serve)
    ran = CliRunner().invoke(verb, list(words), catch_exceptions=False)
    assert ran.exit_code == 0, ran.output
    return tuple(received)


def test_values_are_those_that_the_records_take() -> None:
    settings, limits = given("--keys", "k", "--quota", "500M", "--proxy-from", "10.0.0.0/8", "--proxy-from", "fd00::/8")
    assert settings["proxy_from"] == ("10.0.0.0/8", "fd00::/8") and settings["metrics_port"] == 9464
    assert limits["quota_bytes"] == 500 << 20 and limits["memory_bytes"] == Limits().memory_bytes
    assert limits["workers"] is None  # as many as there are cores, which the record finds out
    usual, _ = given("--keys", "k")
    assert usual["proxy_from"] == () and usual["link"] is None


def test_a_value_that_cannot_be_read_names_its_flag(tmp_path: Any) -> None:
    for flag, value in (("--mean", "a"), ("--std", "1,b"), ("--link", "fast")):
        with pytest.raises(InputError) as refused:
            app(["compile", "mine.onnx", "-o", str(tmp_path / "out"), flag, value])
        assert refused.value.where == flag
