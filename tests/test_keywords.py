"""A record's fields are a function's keywords: at run time, in its signature, and for type checkers."""

import inspect
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import sphynx
from sphynx.config import Keywords, described, setting
from sphynx.errors import InputError

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True, kw_only=True)
class Settings:
    out: str = field(metadata=described("The folder."))
    seeds: int = setting(1, "How many.", least=1)


@Keywords(Settings).function
def work(data: str, settings: Settings) -> tuple[str, Settings]:
    """Return what was given."""
    return data, settings


def test_fields_are_keywords() -> None:
    assert work("digits", out="here") == ("digits", Settings(out="here", seeds=1))
    assert work("digits", out="here", seeds=3)[1].seeds == 3
    assert str(inspect.signature(work)).startswith("(data: str, /, *, out: str, seeds: int = 1)")
    assert work.__doc__ == "Return what was given."


def test_what_is_missing_or_too_much_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="out"):
        work("digits")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="too many positional"):
        work("digits", "here")  # type: ignore[call-arg]


def test_an_unknown_name_is_refused_with_the_one_that_is_meant() -> None:
    with pytest.raises(InputError, match="'seed' is not a parameter") as refused:
        work("digits", out="here", seed=3)  # type: ignore[call-arg]
    assert refused.value.where == "work" and refused.value.remedy == "Did you mean `seeds`?"
    with pytest.raises(InputError) as refused:
        sphynx.design_network("digits", relu_budget="1k", out="x", colour="red")  # type: ignore[call-arg]
    assert "relu_budget" in refused.value.remedy


@pytest.mark.slow
def test_type_checkers_know_the_keywords(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import sphynx\n"
        "sphynx.train_network('design.json', 'digits', out='x', seeds=2)\n"
        "sphynx.train_network('design.json', 'digits', out='x', seedz=2)\n"
        "sphynx.train_network('design.json', 'digits', out='x', seeds='two')\n"
        "sphynx.train_network('design.json', 'digits')\n"
    )
    command = [sys.executable, "-m", "mypy", "--no-incremental", "--follow-imports=silent", str(program)]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    assert [line.split(":")[1] for line in told.splitlines() if "error" in line and "program.py" in line] == [
        "3",
        "4",
        "5",
    ]
