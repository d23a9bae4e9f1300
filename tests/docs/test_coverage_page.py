"""Coverage by package: sums of what coverage.py reports for each file, as the page shows them."""

from __future__ import annotations

from docs.make_coverage import page
from tools.coverage_by_package import OWN, by_package


def test_files_are_summed_by_package() -> None:
    found = {"system.py": (10, 5), "zoo/a.py": (7, 7), "zoo/b/c.py": (3, 1)}
    report = {
        "files": {
            f"src/sphynx/{name}": {"summary": {"num_statements": statements, "covered_lines": ran}}
            for name, (statements, ran) in found.items()
        }
    }
    packages = by_package(report)
    assert packages == {OWN: {"statements": 10, "ran": 5}, "zoo": {"statements": 10, "ran": 8}}
    machine = {"architecture": "x86_64", "cores": 2, "versions": {"python": "3.11.7"}}
    text = page({"packages": packages, "machine": machine, "commit": "abc"})
    assert text.endswith("| (its own files) | 10 | 5 | 50.0 |\n| zoo | 10 | 8 | 80.0 |\n| **all** | 20 | 13 | 65.0 |\n")
    assert "not been measured" in page(None)
