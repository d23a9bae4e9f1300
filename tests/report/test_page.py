"""The report page: whole, self-contained, without charts that have no input. Chromium opens it where it is there."""

import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sphynx.errors import InputError
from sphynx.report.cards import tiles
from sphynx.report.page import Report, make_report
from sphynx.report.provenance import made_elsewhere
from sphynx.report.sources import read_sources
from sphynx.run.environment import describe_environment
from sphynx.svg.charts import NARROW, WIDE
from sphynx.svg.drawing import Text, text_width
from sphynx.zoo.shipped import load_card
from tests.design.conftest import brief_timing as brief_timing  # a fixture
from tests.design.requests import pipeline
from tests.report.inputs import private_row, write_check, write_private

RESULTS = Path(__file__).parents[2] / "results" / "cifar100"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
EVERY_CHART = {
    "skeleton-0",
    "training-loss-0",
    "training-accuracy-0",
    "beta-0",
    "pareto-relus-cifar100",
    "pareto-latency-cifar100",
    "pareto-total-cifar100",
    "timeline-0",
    "traffic-0",
    "ranges-0",
}


def make(*paths: Path) -> Report:
    return make_report(read_sources(paths), describe_environment())


@pytest.fixture(scope="module")
def whole(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Report:
    folder = tmp_path_factory.mktemp("inputs")
    rows = [private_row("paper-80"), private_row("paper-80", "gmw", timeline=[], layers=[])]
    rows += [private_row(str(n), relus=n, online_s=n / 1e5, timeline=[], layers=[]) for n in (51_200, 102_400)]
    return make(runs, RESULTS, write_private(folder / "private.json", rows), write_check(folder / "check.json"))


def test_every_chart_is_there_once(whole: Report) -> None:
    ids = [chart.id for chart in whole.charts]
    assert len(ids) == len(set(ids))
    assert set(ids) >= EVERY_CHART
    assert "timeline-1" not in ids  # the second row has no timeline
    for chart in set(ids) - {i for i in ids if i.startswith("skeleton")}:
        assert whole.html.count(f'<figure id="{chart}">') == 1
    # Two cells each: published ones, those trained and those found here, those of three kept CIFAR-100 searches, two of
    # the same name.
    assert whole.html.count('class="cell"') == len(whole.cells) == 12


@pytest.mark.parametrize("width", [NARROW - 24, WIDE])
def test_no_text_of_a_chart_covers_another_or_sticks_out(whole: Report, width: float) -> None:
    for chart in whole.charts:
        texts = [shape for shape in chart.draw(width).shapes if isinstance(shape, Text) and shape.text]
        areas = [(text.text, *_area(text)) for text in texts]
        for text, left, top, right, bottom in areas:
            assert left >= -1 and right <= width + 1, (chart.id, text)
            for other, *(a, b, c, d) in areas:
                apart = min(right, c) - max(left, a) <= 1 or min(bottom, d) - max(top, b) <= 1
                assert apart or (other, a, b) == (text, left, top), (chart.id, text, other)


def _area(text: Text) -> tuple[float, float, float, float]:
    """Left, top, right, bottom."""
    wide = text_width(text.text, text.size)
    if text.turned:  # around its middle, or upwards from its start
        up = wide / 2 if text.anchor == "middle" else wide
        return text.x - 0.8 * text.size, text.y - up, text.x + 0.2 * text.size, text.y + wide - up
    left = text.x - {"start": 0.0, "middle": 0.5, "end": 1.0}[text.anchor] * wide
    return left, text.y - 0.75 * text.size, left + wide, text.y + 0.2 * text.size


def test_cells_of_any_name_are_drawn_into_the_folder(tmp_path: Path) -> None:
    kept = json.loads((RESULTS / "paper-80.json").read_text())
    kept["config"]["design"]["genotype"]["name"] = "../../else/where"
    (tmp_path / "kept.json").write_text(json.dumps(kept))
    figures = tmp_path / "deep" / "figures"
    written = make(tmp_path / "kept.json").save_figures(figures)
    assert {path.parent.resolve() for path in written} == {figures.resolve()}
    assert figures / "..-..-else-where-normal.svg" in written


def test_it_asks_for_nothing(whole: Report) -> None:
    text = whole.html.replace("http://www.w3.org/2000/svg", "")
    assert not re.findall(r"https?:|//[a-z]|\bsrc=|@import|url\(|<link|<iframe", text)


def test_a_benchmark_names_its_machine(whole: Report) -> None:
    assert "machine: made-up, 2 cores, load 0.1 at the start, sphynx 0.1.0" in whole.html
    assert "316 / 232 MB" in whole.html


def test_benchmarks_of_another_machine_or_version_are_labelled(tmp_path: Path) -> None:
    here = describe_environment()
    named = {"architecture": "a", "cores": here["cores"], "system": here["platform"]}
    other = {**named, "system": "Elsewhere-1.0"}
    for machine, source, label in (
        (named, here["source_sha256"], "made here"),
        (named, "0123456789", "other version (unknown, source 01234567)"),
        (other, here["source_sha256"], "other machine (Elsewhere-1.0)"),
        (None, None, "unknown machine and version"),
    ):
        rows = [private_row(str(n), relus=n, machine=machine, source={"source_sha256": source}) for n in (1, 2, 3)]
        report = make(write_private(tmp_path / "p.json", rows))
        assert re.search(rf"\[1\] machine: [^<]*{re.escape(label)}", report.html)
        for chart in report.charts:  # timeline, traffic
            assert label in chart.caption, chart.id


def test_a_model_by_name_has_its_card_and_its_place(tmp_path: Path) -> None:
    name = "sphynx-cifar100-25k"
    report = make(Path(name), write_private(tmp_path / "p.json", [private_row(name)]))
    assert {"pareto-relus-cifar100", "pareto-latency-cifar100"} <= {chart.id for chart in report.charts}
    assert f"{100 * load_card(name)['accuracy']:.2f} %" in report.html
    assert "other machine (NVIDIA H200)" in report.html
    assert f"by {name}, distilled" in report.html  # the hover text of its latency
    with pytest.raises(InputError, match="no model of that name"):
        make(Path("sphynx-cifar100-1k"))


def test_the_tiles_are_all_about_one_network(tmp_path: Path) -> None:
    """The fastest row is another network's, and the most accurate network of all has no row."""
    names = ("stream-cifar100-25k", "stream-cifar100-12k", "stream-cifar100-51k")
    relus = {name: load_card(name)["relus"] for name in names}
    times = {"stream-cifar100-25k": 0.2, "stream-cifar100-12k": 0.1}
    rows = [private_row(name, relus=relus[name], online_s=online_s) for name, online_s in times.items()]
    sources = read_sources([*map(Path, names), write_private(tmp_path / "p.json", rows)])
    shown = {tile.name: tile for tile in tiles(sources, describe_environment())}
    most_accurate = max(times, key=lambda name: load_card(name)["accuracy"])
    assert shown["ReLUs"].value == f"{relus[most_accurate]:,}"
    assert shown["online latency"].value == f"{1e3 * times[most_accurate]:.0f} ms"
    assert all(most_accurate in tile.detail for tile in shown.values())


def test_stream_networks_have_a_line_of_their_own_beside_others(tmp_path: Path) -> None:
    names = ("sphynx-cifar100-25k", "stream-cifar100-25k")
    times = write_private(tmp_path / "p.json", [private_row(name, "gmw") for name in names])
    charts = {chart.id: chart.alone().to_svg() for chart in make(*map(Path, names), times).charts}
    for chart in ("pareto-latency-cifar100", "pareto-total-cifar100"):
        assert "our stream networks, gmw" in charts[chart] and "our other networks, gmw" in charts[chart]


def test_the_pieces_of_a_tensor_are_one_row_of_traffic(tmp_path: Path) -> None:
    layers = [
        {"name": f"pixels{place}/mask", "phase": "offline", "sent_bytes": 1000, "received_bytes": 0, "seconds": 0}
        for place in ("", "[0:1,0:32]", "[31:32,0:32]")
    ]
    report = make(write_private(tmp_path / "p.json", [private_row(layers=layers, timeline=[])]))
    assert "pixels/mask, offline: 3 kB sent" in report.html
    assert "[0:1,0:32]" not in report.html


def test_results_of_another_machine_are_labelled(whole: Report) -> None:
    assert "other machine (NVIDIA H200)" in whole.html
    assert "not\u00a0here\u00a0[1]" in whole.html
    assert re.search(r"<td [^>]*>here</td>", whole.html)  # the run that was made by this test


def test_a_machine_with_several_versions_is_named_once_in_a_caption() -> None:
    present = {"platform": "here", "source_sha256": "0" * 16}
    made = [{"platform": "there", "sphynx": "1", "source_sha256": name * 16} for name in "aab"]
    text = made_elsewhere([*made, present, {}], present)
    assert text == (
        " Not made here by this version: other machine (there); other version (1, source aaaaaaaa, bbbbbbbb)"
        " / unknown machine and version."
    )
    assert made_elsewhere([present], present) == ""


@pytest.mark.parametrize(
    ("inputs", "sections"),
    [
        (("first",), ["summary", "network", "training", "cards"]),
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
    result = pipeline(tmp_path / "small", rivals=1).run()
    page = make(tmp_path / "small").html
    assert re.findall(r'<section id="(\w+)">', page) == [
        "summary",
        "network",
        "design",
        "training",
        "search",
        "networks",
        "cards",
    ]
    for row in result.comparison.rows:
        assert row.cells in page
        assert f"{100 * row.mean:.2f} %" in page
    assert " against " in page
    for entry in result.ranking:
        assert f"{entry.cells} {100 * entry.held_out:.2f} % (1 epochs)" in page
    assert "Minutes by stage: estimate " in page
    file = tmp_path / "small" / "result.json"  # as `--compare none` leaves it: the plan and the network's own row
    file.write_text(json.dumps({**result.to_json(), "comparison": {"recipe": None, "rows": [], "gains": []}}))
    alone = make(tmp_path / "small").html
    assert "budget " in alone and f"{100 * result.accuracy:.2f} %" in alone
    assert re.findall(r'<section id="(\w+)">', alone)[0] == "summary"


def test_what_is_no_input_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="neither a run nor a results file"):
        make(tmp_path)
    (tmp_path / "odd.json").write_text('{"rows": [1]}')
    with pytest.raises(InputError, match="neither a results file"):
        make(tmp_path / "odd.json")


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"layers": [{"name": "a"}]}, "layers: entry 0: 4 errors"),
        ({"timeline": [{"party": "a", "phase": "online", "name": "b", "start_s": 0, "end_s": float("nan")}]}, "end_s"),
        ({"timeline": [{"party": "a", "phase": "online", "name": "b", "start_s": "0", "end_s": 1}]}, "start_s"),
        ({"layers": {"name": "a"}}, "layers: expected a list"),
    ],
)
def test_faults_of_a_benchmark_file_are_named(tmp_path: Path, change: dict[str, Any], fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        make(write_private(tmp_path / "p.json", [private_row(**change)]))


def test_names_cannot_inject_markup(tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script>\"'&"
    row = private_row(
        hostile,
        machine=hostile,
        layers=[{"name": hostile, "phase": "online", "sent_bytes": 1, "received_bytes": 1, "seconds": 0}],
    )
    page = make(write_private(tmp_path / "p.json", [row])).html
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_figures_as_files(whole: Report, tmp_path: Path) -> None:
    """All kinds; of kinds that there are many of, the first."""
    charts = tuple(chart for chart in whole.charts if chart.id in EVERY_CHART)
    written = replace(whole, charts=charts).save_figures(tmp_path)
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
        [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--enable-logging=stderr",
            "--v=0",
            "--dump-dom",
            f"--window-size={width},900",
            f"--user-data-dir={tmp_path / 'profile'}",
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "CONSOLE" not in shown.stderr
    assert '<div id="hover"' in shown.stdout
    assert "<title>false</title>" in shown.stdout
    assert "<title>" not in re.sub(
        r"<head>.*?</head>", "", shown.stdout, flags=re.S
    )  # the script took the marks' titles
    for chart in EVERY_CHART - {"skeleton-0"}:
        assert f'<figure id="{chart}"' in shown.stdout
