"""Shell completion, as a shell asks for it: the environment says what was typed."""

import os
import subprocess
import sys

import pytest

PROGRAM = "import sys; sys.argv[0] = 'sphynx'; from sphynx.cli.main import main; main()"


def completed(typed: str) -> list[str]:
    asked = {"_SPHYNX_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split(" ")) - 1)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=os.environ | asked, capture_output=True, text=True)
    return done.stdout.split()


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("sphynx se", ["serve", "search"]),
        ("sphynx keys i", ["init", "install", "issue"]),
        ("sphynx plan --relu-b", ["--relu-budget"]),
        ("sphynx infer --backend g", ["gc", "gmw"]),
    ],
)
def test_what_was_begun_is_completed(typed: str, offered: list[str]) -> None:
    assert completed(typed) == offered
