"""docs/results/paper.md: whose claims they are, what counts beside trainings, and what the paper prints twice."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from reproduction.counted import compare_counts, compare_rows
from reproduction.experiments import EXPERIMENTS
from reproduction.imagenet_cost import SPEED, imagenet_cost
from reproduction.kept_searches import read_placements
from reproduction.page import make_page
from reproduction.paper_spread import networks_printed_twice
from reproduction.tables import PaperRow

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/results/paper.md").read_text()


def section(name: str) -> str:
    return PAGE.split(f"\n## {name}\n")[1].split("\n## ")[0]


def test_every_experiment_and_every_count_has_a_verdict() -> None:
    shown = dict(re.findall(r"^\| \[([\w-]+)\]\(#[\w-]+\) \| .+ \| \*\*(.+?)\*\*", PAGE, re.MULTILINE))
    assert list(shown) == [*(one.name for one in compare_counts()), *EXPERIMENTS]
    words = {"reproduced", "not reproduced", "undecided", "not run"}
    assert all(shown[name] in words for name in EXPERIMENTS)


def test_claims_of_ours_are_not_called_the_papers() -> None:
    own = {name for name, experiment in EXPERIMENTS.items() if experiment.ours}
    assert own == {"likely-rivals", "random-cells", "search"}
    for name in EXPERIMENTS:
        assert ("not a claim of the paper" in section(name)) == (name in own)
        assert ("The paper: " in section(name)) != (name in own)
    assert PAGE.count("| *Ours, not the paper's:*") == len(own)


def test_no_verdict_rests_on_a_search_with_another_temperature() -> None:
    placements = read_placements(ROOT / "results/placement")
    findings = section("placement-grid").split("| series |")[0]
    told = {one.name for one in placements if f"- {one.name} takes" in findings}
    assert told == {one.name for one in placements if one.counts("uniform")}
    assert {"place-released-d5", "place-released-warm-d6", "d5-fast-gumbel"}.isdisjoint(told)
    assert {one.tau_start for one in placements if one.name in told} == {1000.0}
    assert "tau from 10, the released code's default, no longer count" in section("rules made after results")


def test_two_prints_of_one_network_calibrate_the_papers_spread() -> None:
    ranges = {one.network: round(one.range, 2) for one in networks_printed_twice()}
    assert (ranges["C=5 D=5 at (1,3)"], ranges["C=5 D=6 at (2,4)"]) == (2.01, 2.36)  # figures 4 and 5
    assert "C=5 D=5 at (0,2)" not in ranges  # printed once
    assert "60.02 (figure 5), 62.38 (figure 4); 2.4 points apart" in section("spread")


def test_counts_agree_where_one_reading_does() -> None:
    assert {one.name: (one.agreeing, one.values) for one in compare_counts()} == {
        "relu-counts": (45, 49),
        "parameters": (6, 6),
        "latency-estimates": (13, 13),
        "latency-columns": (5, 7),
    }
    first, second, wrong = (
        PaperRow("t", "a", "1K", 1000),
        PaperRow("t", "b", "1K", 400, "n"),
        PaperRow("t", "c", "2K", 9),
    )
    found = compare_rows("name", "Counts", "table", [first, second, wrong])
    assert found.verdict == "1 of 2 values agree" and len(found.why) == 2


def test_imagenets_hours_follow_the_measured_epochs(tmp_path: Path) -> None:
    cost = imagenet_cost(ROOT / "results")
    assert (cost.networks, cost.epochs) == (13, 120) and 0 < cost.fewest_hours < cost.most_hours
    assert f"{cost.fewest_hours:.0f} to {cost.most_hours:.0f} hours of one H200" in section("imagenet")
    measured = json.loads((ROOT / "results" / SPEED).read_text())
    for row in measured["rows"]:
        row["epoch_seconds"] *= 3
    (tmp_path / SPEED).parent.mkdir()
    (tmp_path / SPEED).write_text(json.dumps(measured))
    slower = imagenet_cost(tmp_path)
    assert slower.fewest_hours == pytest.approx(3 * cost.fewest_hours)
    assert slower.most_hours == pytest.approx(3 * cost.most_hours)


def test_private_inference_of_an_imagenet_network_finds_its_row(tmp_path: Path) -> None:
    """Its design has 172,480 ReLUs, which the paper prints as 172K; times stand where nothing else ran."""
    measured = json.loads((ROOT / "results/private/paper-tiny-imagenet-102k.json").read_text())
    for row in measured["rows"]:
        row["relus"] = 172_480
    shutil.copytree(ROOT / "results" / "speed", tmp_path / "speed")
    (tmp_path / "private").mkdir()
    shown = []
    for load in (0.5, 4.0):
        measured["machine"]["load_average"][0] = load
        (tmp_path / "private" / "paper-imagenet-172k.json").write_text(json.dumps(measured))
        shown.append(make_page(tmp_path).split("\n## imagenet\n")[1].split("\n## ")[0])
    quiet, busy = shown
    assert "--channels 10 --depth 10 --reduce-at 1,5 --image-size 224 --classes 1000" in quiet
    assert f"| 172,480 | gc | loopback | {1e3 * measured['rows'][0]['online_s']:.0f} ms |" in quiet
    assert "| 172,480 | gc | loopback |  |  | 75.69 |" in busy and "other work shared the machine" in busy
    assert all("3.67 s" in one and "Rows of 172,480 ReLUs are of an older protocol" in one for one in shown)
