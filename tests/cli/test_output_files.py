"""Files that verbs write at their end are checked at their beginning."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from sphynx.cli.main import app
from sphynx.errors import InputError
from tests.cli.test_flags import named

MEASURING = [["bench", "scaling"], ["check", "no-such-program"]]


def test_these_verbs_draw_a_figure() -> None:
    assert {verb for verb, _ in named("--figure")} == {"sphynx bench scaling", "sphynx check"}


@pytest.mark.parametrize("verb", MEASURING, ids=" ".join)
@pytest.mark.parametrize("name", ["figure.jpg", "figure", "figure.svg.gz"])
def test_a_figure_of_no_known_format_is_refused(verb: list[str], name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none of \.svg, \.png") as caught:
        CliRunner().invoke(app, [*verb, "--figure", str(tmp_path / name)], catch_exceptions=False)
    assert "--figure figure" in caught.value.remedy and ".svg" in caught.value.remedy


@pytest.mark.parametrize("verb", MEASURING, ids=" ".join)
def test_a_figure_that_cannot_be_written_is_named(verb: list[str], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be written"):
        CliRunner().invoke(app, [*verb, "--figure", str(tmp_path / "file" / "figure.SVG")], catch_exceptions=False)
