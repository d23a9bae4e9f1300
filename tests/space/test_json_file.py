"""Errors about a JSON file that cannot be read say nothing of another kind of file."""

from pathlib import Path

import pytest

from sphynx.data.source import recorded_source
from sphynx.errors import InputError
from sphynx.program.folder import load_program
from sphynx.run.folder import RunFolder
from sphynx.space.genotype import Genotype
from sphynx.space.json_file import read_json
from sphynx.zoo.shipped import read_object


def test_failures_are_named(tmp_path: Path) -> None:
    file = tmp_path / "program.json"
    with pytest.raises(InputError, match="there is no such file"):
        read_json(file)
    with pytest.raises(InputError, match="it cannot be read"):
        read_json(tmp_path)
    file.write_text('{"format": ')
    for load in (load_program, Genotype.load):
        with pytest.raises(InputError, match="it is not valid JSON") as refused:
            load(file)
        assert "genotype" not in str(refused.value) and str(file) in str(refused.value)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "9" * 5_000, f"[-{'1' * 100_000}]"])
def test_values_that_python_does_not_read_are_refused_like_others(text: str, tmp_path: Path) -> None:
    file = tmp_path / "design.json"
    file.write_text(text)
    with pytest.raises(InputError, match="nested too deeply or too long"):
        read_json(file)
    with pytest.raises(InputError):
        RunFolder(tmp_path).read_json(file.name)
    with pytest.raises(InputError, match="cannot be read"):
        read_object(file)
    assert recorded_source(file) is None
