"""What a user is told of a JSON file that cannot be read says nothing of another kind of file."""

from pathlib import Path

import pytest

from sphynx.errors import InputError
from sphynx.program.files import load_program
from sphynx.space.genotype import load_genotype
from sphynx.space.json_file import read_json


def test_failures_are_named(tmp_path: Path) -> None:
    file = tmp_path / "program.json"
    with pytest.raises(InputError, match="there is no such file"):
        read_json(file)
    with pytest.raises(InputError, match="it cannot be read"):
        read_json(tmp_path)
    file.write_text('{"format": ')
    for load in (load_program, load_genotype):
        with pytest.raises(InputError, match="it is not valid JSON") as refused:
            load(file)
        assert "genotype" not in str(refused.value) and str(file) in str(refused.value)
