"""Every example runs as it is written, from a folder of its own; those that build on each other in turn.

Notebooks run as their code cells do, from top to bottom in one process; their files hold no outputs.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.warm_process import Warm

ROOT = Path(__file__).parents[2]
SCRIPTS = {file.name[:2]: file for file in sorted((ROOT / "examples").glob("[0-9]*.py"))}
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
MAX_LINES = 80
# What each shows, in patterns that hold on every machine.
SHOWS = {
    "01": r"25,600 ReLUs and [\d,]+ multiply-accumulates",
    "02": r"2,048 ReLUs, [\d,]+ parameters\n(.*\n)+[\d.]+% of the test pictures are right",
    "03": r"as integers, .*\n(.*\n)+gmw: .*\ngc: .*\n(.*\n)+.*weights\.safetensors",
    "04": r"prepared 3 bundles .*\n(.* -> .*\n){3}0 bundles are left",
    "05": r"192 ReLUs and 384 comparisons(.*\n)+pt2: .* 192 ReLUs",
    "06": r"bandit: .*\nnormal: .*\nreduce: .*\na network of these cells: [\d,]+ ReLUs",
    "08": r"1024 ReLUs before, (1\d\d|200) now\n(.*\n){2}(picture \d: \d privately, \d in truth\n){2}",
    "07": r'(  service: "POST .* 200 -\n\w+: \{"label": "\w+", "probability": [\d.]+\}\n){3}',
    "09": r"a map of \(1, 16, 16\), behind a sigmoid\n(picture \d: intersection over union 0\.[5-9]\d\n){3}",
    "10": r"scores off by 0\.\d+%, boxes off by [\d.]+%\n(found \[.*\], drawn \[.*\]\n){3}",
    "11": r"outputs \['embedding'\]\n(a [89]: like the enrolled 8 [\d.-]+, like the enrolled 9 [\d.-]+\n){4}",
    "12": r"it reads numbers, -1\.5 to 1\.5 in 12 bits\n(answered (low|middle|high), played (low|middle|high)\n){4}",
}


SLOW = [pytest.param((number,), marks=pytest.mark.slow) for number in ("08", "09", "10", "11")]


def run(warm: Warm, folder: Path, *words: str) -> str:
    """Run Python with these words in the folder; return what it prints."""
    command = [str(warm.programs / "python"), *words]
    ran = subprocess.run(command, cwd=folder, env=warm.environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.parametrize("numbers", [("01",), ("02", "03", "04", "07"), ("05",), ("06",), *SLOW, ("12",)], ids="-".join)
def test_examples(numbers: tuple[str, ...], tmp_path: Path, warm: Warm) -> None:
    for number in numbers:
        shown = run(warm, tmp_path, str(SCRIPTS[number]))
        assert re.search(SHOWS[number], shown), shown


def test_every_example_is_run_short_and_on_the_page() -> None:
    assert set(SCRIPTS) == set(SHOWS)
    page = (ROOT / "docs" / "examples.md").read_text()
    for file in (*SCRIPTS.values(), *NOTEBOOKS):
        assert f"](../examples/{file.name})" in page
    assert not [file.name for file in SCRIPTS.values() if len(file.read_text().splitlines()) > MAX_LINES]


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(notebook: Path, tmp_path: Path, warm: Warm) -> None:
    content = json.loads(notebook.read_text())
    assert (content["nbformat"], content["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in content["cells"]}) == len(content["cells"])
    code = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
    assert code and not [cell for cell in code if cell["outputs"] or cell["execution_count"] is not None]
    script = "\n".join("".join(cell["source"]) for cell in code)
    run(warm, tmp_path, "-c", script)
