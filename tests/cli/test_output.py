"""Tables print what they are given, whoever chose it."""

import dataclasses
import queue

import pytest

from sphynx.cli import options
from sphynx.cli.output import print_table
from sphynx.cli.plan_table import print_plans
from sphynx.run.progress import Voice
from sphynx.space.design import Design
from sphynx.space.planner import plan
from sphynx.space.published_cells import SPHYNX
from sphynx.space.tally import Shape
from sphynx.units import short_number


@pytest.mark.parametrize("name", ["[dog]", "[/oops]", "[link=http://example.com]cat[/link]", ":cat:", "[bold]x"])
def test_names_are_printed_as_they_are(capsys: pytest.CaptureFixture[str], name: str) -> None:
    print_table(f"About {name}", ["image", "label"], [["a.png", name]], note=f"Note {name}")
    printed = capsys.readouterr().out
    assert printed.count(name) == 3 and "\x1b" not in printed


def test_counts_are_those_of_the_places_that_were_given(capsys: pytest.CaptureFixture[str]) -> None:
    plans = plan(Design(SPHYNX, 2, 3, (1, 2), Shape(3, 32, 32), 4), 6_144, 0.05)
    placed = dataclasses.replace(plans.design, reduce_positions=(0, 1))
    print_plans(plans, 6_144, 0.05, placed)
    told = " ".join(capsys.readouterr().out.split())
    assert (
        f"At 0, 1 the chosen one has {short_number(placed.parameters)} parameters and {short_number(placed.macs)} MACs."
        in told
    )
    assert placed.parameters != plans.chosen.parameters


def test_who_waits_for_data_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: queue.SimpleQueue[str] = queue.SimpleQueue()
    voice = Voice("quiet", lambda update: heard.put(update.note))
    with options.reading("photos", voice):
        pass
    monkeypatch.setattr(options, "SILENCE_S", 0.0)
    with options.reading("scans", voice):
        assert heard.get(timeout=60) == "reading scans ..."
    assert heard.empty()


def test_a_narrow_table_folds_its_names_and_keeps_every_number(capsys: pytest.CaptureFixture[str]) -> None:
    columns = ["image", "ReLU", ">offline", ">offline bytes", ">online", ">online bytes", ">rounds"]
    row = ["broken/dog/sixteen and more.png", "gmw", "873 ms", "8.61 MB", "70.7 ms", "330 kB", "7"]
    print_table("Cost", columns, [row], width=80)
    lines = capsys.readouterr().out.splitlines()
    assert {len(line) for line in lines[1:]} == {80}
    assert all(cell in "\n".join(lines) for cell in [*row[1:], "rounds", "broken/dog/sixteen", "and more.png"])
