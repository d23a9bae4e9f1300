"""Files that verbs write at their end are checked at their beginning."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from sphynx.cli.main import app
from sphynx.errors import InputError
from tests.cli.test_flags import named
from tests.warm_process import Warm

CHECK = ["check", "no-such-program"]


def test_these_verbs_draw_a_figure() -> None:
    assert {verb for verb, _ in named("--figure")} == {"sphynx check"}


@pytest.mark.parametrize("name", ["figure.jpg", "figure", "figure.svg.gz"])
def test_a_figure_of_no_known_format_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"any of \.svg, \.png") as caught:
        CliRunner().invoke(app, [*CHECK, "--figure", str(tmp_path / name)], catch_exceptions=False)
    assert "--figure figure" in caught.value.remedy and ".svg" in caught.value.remedy


def test_a_folder_that_cannot_be_made_is_named_before_the_run_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for out in (tmp_path / "file", tmp_path / "file" / "compiled"):
        with pytest.raises(InputError, match="the folder cannot be created"):
            CliRunner().invoke(app, ["compile", "no-such-run", "-o", str(out)], catch_exceptions=False)
    with pytest.raises(InputError, match="no-such-run"):
        CliRunner().invoke(app, ["compile", "no-such-run", "-o", str(tmp_path / "new")], catch_exceptions=False)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("page", "code", "advice"),
    [("/dev/full", 1, "free disk space"), ("/proc/no-such-folder/page.html", 2, "Name another file")],
)
def test_a_failure_of_the_disk_is_one_line_and_a_remedy(
    page: str, code: int, advice: str, tmp_path: Path, warm: Warm
) -> None:
    done = warm.sphynx("report", "sphynx-cifar100-25k", "--no-examine", "-q", "-o", page, cwd=tmp_path)
    error, remedy = done.stderr.splitlines()
    assert done.returncode == code and error.startswith("error: ") and advice in remedy


def test_a_figure_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be written"):
        CliRunner().invoke(app, [*CHECK, "--figure", str(tmp_path / "file" / "figure.SVG")], catch_exceptions=False)
