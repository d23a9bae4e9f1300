"""The user's network leads the page; others are named as comparisons; benchmarks beside a run are found."""

import re
import shutil
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from scipy.stats import binomtest

from sphynx.report.confusion_figure import FEW_CLASSES, confusion_chart, frequent_confusions
from sphynx.report.page import known_summary, make_report
from sphynx.report.sources import add_beside, read_sources
from sphynx.report.summary import Asked, Cost, Judged, NetworkSummary, lead_runs
from sphynx.run.environment import describe_environment
from sphynx.svg.drawing import Text, text_width
from sphynx.train.confusion import ClassScore
from tests.report.inputs import private_row, write_check, write_private

RESULTS = Path(__file__).parents[2] / "results" / "cifar100"
SUMMARY = NetworkSummary("mine", "10 classes", 25_600, judged=Judged(0.7, 1000, "fp32"))


@pytest.mark.parametrize(("right", "images"), [(8, 10), (350, 359), (0, 20), (6928, 10_000), (50, 50)])
def test_the_interval_is_wilsons(right: int, images: int) -> None:
    theirs = binomtest(right, images).proportion_ci(0.95, method="wilson")
    low, high = Judged(right / images, images, "fp32").interval
    assert (low, high) == pytest.approx((theirs.low, theirs.high), abs=1e-5)


def test_one_network_leads_and_others_are_for_comparison(runs: Path) -> None:
    sources = read_sources([runs / "first", RESULTS / "paper-80.json"])
    assert [run.role for run in sources.training] == ["own", "comparison"]
    assert [run.name for run in lead_runs(sources)] == ["first"]
    html = make_report(sources, describe_environment()).html
    sections = re.findall(r'<section id="(\w+)">', html)
    assert sections[:2] == ["summary", "network"] and "Networks for comparison" in html
    assert sections.index("summary") < sections.index("networks")
    summary = known_summary(sources)
    assert summary is not None and summary.judged is not None and summary.relus == sources.training[0].relus
    assert f"{100 * summary.judged.accuracy:.2f} %" in html


def test_roles_follow_from_the_place_below_what_is_given(runs: Path, tmp_path: Path) -> None:
    for place in ("training/seed-0", "comparison/random/seed-0", "training/seed-0/teacher"):
        (tmp_path / "comparison" / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(runs / "first", tmp_path / "comparison" / place)
    found = {run.name: run.role for run in read_sources([tmp_path / "comparison"]).training}
    assert list(found.values()) == ["own", "comparison", "teacher"] and "comparison/training/seed-0" in found


def test_many_networks_have_no_leader() -> None:
    sources = read_sources([RESULTS])
    assert lead_runs(sources) == [] and known_summary(sources) is None
    assert re.findall(r'<section id="(\w+)">', make_report(sources, describe_environment()).html)[0] != "summary"


def test_benchmarks_and_checks_beside_a_run_are_found(runs: Path) -> None:
    relus = read_sources([runs / "first"]).training[0].relus
    files = [
        write_private(runs / "p.json", [private_row("first", relus=relus), private_row("first", "gmw", relus=relus)]),
        write_check(runs / "first" / "c.json"),
    ]
    other = write_private(runs / "other.json", [private_row("another")])
    (runs / "notes.json").write_text("not JSON")
    try:
        sources = read_sources([runs / "first"])
        assert sorted(path.name for path in add_beside([runs / "first"], sources)) == ["c.json", "p.json"]
        assert len(sources.private) == 2 and len(sources.checks) == 1
        summary = known_summary(sources)
        assert summary is not None and summary.cost is not None and summary.cost.measured
        assert summary.cost.online_s == min(row.values.online_s for row in sources.private)
    finally:
        for file in (*files, other, runs / "notes.json"):
            file.unlink()


def test_the_card_says_what_is_measured_and_what_is_estimated() -> None:
    cost = Cost("gmw", "LAN", 0.0225, 0.3, 828_000.0, 27_800_000.0, "597 / 75.1 MB", where="x86_64")
    tiles = {tile.name: tile for tile in replace(SUMMARY, cost=cost).tiles()}
    assert tiles["private latency, measured"].value == "22.5 ms" and tiles["memory"].value == "597 / 75.1 MB"
    assert "27.8 MB offline" in tiles["traffic"].detail and "67.1 to 72.8 %" in tiles["test accuracy"].detail
    tiles = {tile.name: tile for tile in replace(SUMMARY, cost=replace(cost, measured=False, memory="")).tiles()}
    assert "private latency, estimated" in tiles and tiles["traffic"].detail.startswith("estimated")
    assert "memory" not in tiles


def test_wrong_answers_and_classes_are_marked() -> None:
    asked = (Asked("data:,", "cat", "dog", 0.51, True), Asked("data:,", "lap_dog", "lap_dog", 0.9, True))
    summary = replace(
        SUMMARY,
        asked=asked,
        class_names=("cat", "lap_dog"),
        confusion=((3, 1), (0, 4)),
        classes=(ClassScore("cat", 4, 0.75, "lap_dog", 1), ClassScore("lap_dog", 4, 1.0, "", 0)),
    )
    assert [picture.wrong for picture in summary.pictures()] == [True, False]
    table = summary.class_table()
    assert table is not None and table.rows == [["cat", "75.00 %", "4", "lap dog (1)"]]
    assert table.notes == ["1 of 2 classes have no error."]
    html = make_report(read_sources([RESULTS / "paper-80.json"]), {}, summary=summary).html
    assert html.count("<em>wrong</em>") == 1 and 'id="confusion"' in html
    assert "cat mistaken for lap dog" in html and "lap_dog" not in html  # names as people write them


@pytest.mark.parametrize("width", [332.0, 720.0])
def test_labels_of_a_confusion_do_not_overlap(width: float) -> None:
    names = [f"a rather long name {number}" for number in range(FEW_CLASSES)]
    counts = [[(row * column) % 7 for column in range(len(names))] for row in range(len(names))]
    drawing = confusion_chart(counts, names).draw(width)
    texts = [shape for shape in drawing.shapes if isinstance(shape, Text)]
    for text in texts:  # nothing sticks out
        start = text.x - {"start": 0, "middle": 0.5, "end": 1}[text.anchor] * text_width(text.text, text.size)
        assert text.turned or (start >= -1 and start + text_width(text.text, text.size) <= width + 1)
        assert not text.turned or text.y - text_width(text.text, text.size) >= -1
    columns = sorted(text.x for text in texts if text.turned)
    assert all(right - left >= 11 for left, right in pairwise(columns))
    assert frequent_confusions([[0, 9], [3, 0]], ["a", "b"]) == [("a", "b", 9), ("b", "a", 3)]
