"""Generated pages are what their generators print now."""

import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(
    ("generator", "page"),
    [
        (["docs/make_reference.py"], "reference.md"),
        pytest.param(["-m", "reproduction", "page"], "results/paper.md", marks=pytest.mark.slow),
        (["-m", "reproduction", "page", "reduce"], "results/reduce.md"),
        (["-m", "reproduction", "page", "figure"], "images/reduced.svg"),
        (["docs/make_zoo.py"], "results/zoo.md"),
        (["docs/make_stream_results.py"], "results/stream.md"),
        (["docs/make_private_results.py"], "results/private.md"),
        (["docs/make_drawings.py", "layers"], "images/layers.svg"),
        (["docs/make_drawings.py", "parties"], "images/parties.svg"),
        (["docs/make_links.py"], "results/links.md"),
        (["docs/make_estimates.py"], "results/estimates.md"),
        (["docs/make_rebuilt.py"], "results/rebuilt.md"),
        (["docs/make_coverage.py"], "results/coverage.md"),
    ],
)
def test_a_page_is_what_its_generator_prints(generator: list[str], page: str) -> None:
    ran = subprocess.run([sys.executable, *generator], cwd=DOCS.parent, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert (DOCS / page).read_text() == ran.stdout, f"docs/{page} is out of date: run `make docs`"
