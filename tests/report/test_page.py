"""The report page: whole, self-contained, without charts that have no input. Chromium opens it where it is there."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sphynx.errors import InputError
from sphynx.report.page import Report, make_report
from sphynx.report.sources import read_sources
from sphynx.run.environment import describe_environment
from tests.report.inputs import private_row, write_check, write_private
from tests.train.test_pipeline import pipeline

RESULTS = Path(__file__).parents[2] / "results" / "cifar100"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
EVERY_CHART = {
    "skeleton-0", "training-loss-0", "training-accuracy-0", "beta-0", "pareto-relus-cifar100",
    "pareto-latency-cifar100", "timeline-0", "traffic-0", "ranges-0",
}  # fmt: skip


def make(*paths: Path) -> Report:
    return make_report(read_sources(paths), describe_environment())


@pytest.fixture(scope="module")
def whole(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Report:
    folder = tmp_path_factory.mktemp("inputs")
    rows = [private_row("paper-80"), private_row("paper-80", "gmw", timeline=[], layers=[])]
    return make(runs, RESULTS, write_private(folder / "private.json", rows), write_check(folder / "check.json"))


def test_every_chart_is_there_once(whole: Report) -> None:
    ids = [chart.id for chart in whole.charts]
    assert len(ids) == len(set(ids))
    assert set(ids) >= EVERY_CHART
    assert "timeline-1" not in ids  # the second row has no timeline
    for chart in set(ids) - {i for i in ids if i.startswith("skeleton")}:
        assert whole.html.count(f'<figure id="{chart}">') == 1
    assert whole.html.count('class="cell"') == len(whole.cells) == 4  # the published and the searched cells


def test_it_asks_for_nothing(whole: Report) -> None:
    text = whole.html.replace("http://www.w3.org/2000/svg", "")
    assert not re.findall(r"https?:|//[a-z]|\bsrc=|@import|url\(|<link|<iframe", text)


def test_a_benchmark_names_its_machine(whole: Report) -> None:
    assert "machine: made-up, 2 cores, load 0.1 at the start, sphynx 0.1.0" in whole.html
    assert "316 / 232 MB" in whole.html


def test_results_of_another_machine_are_labelled(whole: Report) -> None:
    assert "other machine (NVIDIA H200)" in whole.html
    assert "elsewhere" in whole.html
    assert re.search(r"<td class=\"[^\"]*\">here</td>", whole.html)  # the run that was made by this test


@pytest.mark.parametrize(
    ("inputs", "sections"),
    [
        (("first",), ["networks", "training", "cards"]),
        (("places",), ["search"]),
        (("private.json",), ["private"]),
        (("check.json",), ["private"]),
    ],
)
def test_a_section_without_input_is_left_out(
    runs: Path, tmp_path: Path, inputs: tuple[str, ...], sections: list[str]
) -> None:
    write_private(tmp_path / "private.json", [private_row(layers=[], timeline=[])])
    write_check(tmp_path / "check.json")
    report = make(*((tmp_path if name.endswith(".json") else runs) / name for name in inputs))
    assert re.findall(r'<section id="(\w+)">', report.html) == sections


def test_a_design_run_shows_its_comparison_and_its_runs(tmp_path: Path) -> None:
    result = pipeline(tmp_path / "small").run()
    page = make(tmp_path / "small").html
    assert re.findall(r'<section id="(\w+)">', page) == [
        "design",
        "networks",
        "training",
        "search",
        "comparison",
        "cards",
    ]
    for row in result["comparison"]["rows"]:
        assert row["cells"] in page
        assert f"{100 * row['mean']:.2f} %" in page
    assert "against published cells" in page


def test_what_is_no_input_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no run and no results file"):
        make(tmp_path)
    (tmp_path / "odd.json").write_text('{"rows": [1]}')
    with pytest.raises(InputError, match="no results file"):
        make(tmp_path / "odd.json")


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"layers": [{"name": "a"}]}, "layers: entry 0 lacks phase, sent_bytes, received_bytes"),
        ({"timeline": [{"party": "a", "phase": "online", "name": "b", "start_s": 0, "end_s": float("nan")}]}, "end_s"),
        ({"timeline": [{"party": "a", "phase": "online", "name": "b", "start_s": "0", "end_s": 1}]}, "start_s"),
        ({"layers": {"name": "a"}}, "lacks"),
    ],
)
def test_faults_of_a_benchmark_file_are_named(tmp_path: Path, change: dict[str, Any], fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        make(write_private(tmp_path / "p.json", [private_row(**change)]))


def test_names_cannot_inject_markup(tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script>\"'&"
    row = private_row(hostile, machine=hostile, layers=[{"name": hostile, "phase": "online", "sent_bytes": 1,
                                                         "received_bytes": 1, "seconds": 0}])  # fmt: skip
    page = make(write_private(tmp_path / "p.json", [row])).html
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_figures_as_files(whole: Report, tmp_path: Path) -> None:
    written = whole.save_figures(tmp_path)
    names = {path.name for path in written}
    assert {f"{chart}.{kind}" for chart in EVERY_CHART for kind in ("svg", "png")} <= names
    assert {"sphynx-normal.svg", "sphynx-reduce.svg"} <= names
    assert all(path.stat().st_size > 500 for path in written)


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium here")
@pytest.mark.parametrize("width", [1000, 500])
def test_chromium_shows_it_without_a_complaint(whole: Report, tmp_path: Path, width: int) -> None:
    assert CHROMIUM is not None
    page = tmp_path / "report.html"
    # Scripts have run once the hover box is there; a page wider than its window would scroll sideways.
    probe = "<script>document.title = String(document.documentElement.scrollWidth > innerWidth)</script>"
    page.write_text(whole.html.replace("</body>", probe + "</body>"))
    shown = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0", "--dump-dom",
         f"--window-size={width},900", f"--user-data-dir={tmp_path / 'profile'}", page.as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert "CONSOLE" not in shown.stderr
    assert '<div id="hover"' in shown.stdout
    assert "<title>false</title>" in shown.stdout
    assert "<title>" not in re.sub(
        r"<head>.*?</head>", "", shown.stdout, flags=re.S
    )  # the script took the marks' titles
    for chart in EVERY_CHART - {"skeleton-0"}:
        assert f'<figure id="{chart}"' in shown.stdout
