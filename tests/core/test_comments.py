"""The formatter leaves pictures in comments alone: a reflowed picture of the wire says nothing."""

from __future__ import annotations

import subprocess
import sysconfig
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PICTURE = f"""\
//   upload   | seed, 16 bytes | {" | ".join(f"b at prime {i}" for i in range(1, 9))} |
//            a is uniform
int x;
"""


def test_the_formatter_keeps_a_line_of_a_picture_that_is_too_long() -> None:
    formatter = Path(sysconfig.get_path("scripts")) / "clang-format"
    wanted: list[str | Path] = [formatter, f"--style=file:{REPOSITORY / '.clang-format'}", "--assume-filename=wire.h"]
    assert subprocess.run(wanted, input=PICTURE, capture_output=True, text=True, check=True).stdout == PICTURE
