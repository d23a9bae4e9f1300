"""The benchmark of many cores runs at its smallest."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.service.processes import ROOT
from tests.service.tiny import save_tiny


@pytest.mark.slow
def test_the_benchmark_of_cores_at_its_smallest(tmp_path: Path) -> None:
    save_tiny(tmp_path / "compiled")
    command = [sys.executable, "-m", "benchmarks.cores", str(tmp_path / "compiled"), "--cores", "1,1000"]
    done = subprocess.run(
        [*command, "--processes", "2", "--clients", "1", "--seconds", "0.2", "--bound-seconds", "0.05"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)["rows"]  # there are not 1,000 cores
    assert row["equal_to_oracle"] and row["inferences"] >= 1 and row["server_cpu_s"] > 0
    assert (row["cores"], row["processes"], row["clients"], row["speedup"]) == (1, 2, 1, 1.0)


def test_the_page_on_growth_has_the_kept_rows() -> None:
    page = (ROOT / "docs" / "growth.md").read_text()
    kept = json.loads((ROOT / "results" / "speed" / "cores-16.json").read_text())
    for row in kept["rows"]:
        shown = f"| {row['cores']} | {row['inferences_per_s']:.1f} | {row['speedup']:.2f}x |"
        assert shown in page and row["equal_to_oracle"]
