"""docs/results/reduce.md and its figure: what was run, beside what is published, and what was not run."""

import json
from pathlib import Path
from typing import Any

import pytest
from reproduction.kept_reductions import FOLDER
from reproduction.reduction_figure import draw_reductions
from reproduction.reduction_page import make_reduction_page

from sphynx.reduce.results import Reduced, ReduceResult
from sphynx.space.reduced import NonlinearCounts

PUBLISHED = {
    "SNL": ("73.75", "70.05"),
    "SENet": ("75.28", "70.59"),
    "DeepReDuce": ("68.41",),
    "ReLUPruner": ("71.98",),
    "AutoReP": ("74.92",),
}


def write_kept(results: Path, method: str, accuracies: dict[str, float], *, seed: int = 0) -> None:
    """A kept reduction to 50,000 ReLUs by one or several methods."""
    tried = tuple(
        Reduced(name, NonlinearCounts(50_000, squares=12), accuracy, 0.8, 2.0, accuracy)
        for name, accuracy in accuracies.items()
    )
    trained: dict[str, Any] = {name: {"result": {"epochs": 120}, "config": {}} for name in accuracies}
    name = f"{method}-50k-seed{seed}"
    content = {
        "name": name,
        "asked": {"method": method, "relu_budget": "50k", "seed": seed, "epochs": 120, "minutes": 7.5, "jobs": 3},
        "reduction": ReduceResult(50_000, 557_056, 0.78, tried).to_json(),
        "environment": {"device": "a GPU", "commit": "0123456789ab"},
        "trained": trained,
    }
    (results / FOLDER).mkdir(parents=True, exist_ok=True)
    (results / FOLDER / f"{name}.json").write_text(json.dumps(content))


def test_what_was_not_run_is_said_and_what_is_published_stands_beside_it(tmp_path: Path) -> None:
    page = make_reduction_page(tmp_path)
    assert "77.5 %: not run." in page and "Not measured." in page
    for method, accuracies in PUBLISHED.items():
        rows = [line for line in page.splitlines() if f"*{method}, published" in line]
        assert all(any(f"| {accuracy} |" in row for row in rows) for accuracy in accuracies), method
    assert page.count("not run") == 15 + 1 + 3  # points, the teacher, aims


def test_rows_are_ordered_by_accuracy_and_seeds_have_a_mean(tmp_path: Path) -> None:
    write_kept(tmp_path, "snl", {"snl": 0.74})
    for seed, accuracy in enumerate((0.76, 0.77, 0.78)):
        write_kept(tmp_path, "auto", {"stream": accuracy, "channels": 0.7}, seed=seed)
    page = make_reduction_page(tmp_path)
    rows = [line.split(" | ")[0] for line in page.splitlines() if line.startswith(("| stream", "| snl", "| channels"))]
    assert rows[:5] == ["| stream, kept by auto"] * 3 + ["| snl", "| channels"]
    assert "- stream, 120 epochs: 77.00 ± 1.00 over 3 seeds" in page
    assert "- `auto` at 50,000 ReLUs at least 76.0 %: **reached**, 76.00 %" in page
    assert "- `channels` at 50,000 ReLUs at least 73.8 %: **missed**, 70.00 %" in page
    assert "- `auto` at 25,000 ReLUs at least 73.5 %: not run" in page
    assert "Made on a GPU at commit 0123456789ab, up to 3 at a time." in page
    assert "| snl | 120 | 0 | 50,000 | 0 | 12 | 0 | 74.00 | 80.00 | 2.0 | 7.5 |" in page


def test_the_figure_marks_what_was_run_here(tmp_path: Path) -> None:
    assert ", run here: " not in draw_reductions(tmp_path).to_svg()
    write_kept(tmp_path, "snl", {"snl": 0.74})
    drawn = draw_reductions(tmp_path).to_svg()
    assert "SNL, run here: 74.00 %, 50,000 ReLUs" in drawn and "DELPHI, run here" not in drawn


@pytest.mark.parametrize("title", ["50,000", "25,000", "12,900"])
def test_each_budget_has_a_section(tmp_path: Path, title: str) -> None:
    assert f"## {title} ReLUs" in make_reduction_page(tmp_path)
