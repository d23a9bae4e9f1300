"""docs/reference.md is what its generator prints now, and the generator leaves nothing out."""

import subprocess
import sys
from dataclasses import fields
from pathlib import Path

from sphynx.train.recipe import Recipe

DOCS = Path(__file__).parents[2] / "docs"
REGENERATE = "docs/reference.md is out of date: run `make docs` (python docs/make_reference.py > docs/reference.md)"


def test_the_page_is_what_the_command_line_says() -> None:
    command = [sys.executable, str(DOCS / "make_reference.py")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert (DOCS / "reference.md").read_text() == ran.stdout, REGENERATE


def test_every_recipe_value_is_a_flag_on_the_page() -> None:
    page = (DOCS / "reference.md").read_text()
    section = page.split("\n## sphynx train\n")[1].split("\n## ")[0]
    missing = [field.name for field in fields(Recipe) if f"`--{field.name.replace('_', '-')}" not in section]
    assert not missing
