"""The network that a report is about: a run with its compiled program beside it, and a compiled ONNX network."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from sphynx.api import rates
from sphynx.api.compiled import Compiled
from sphynx.api.compiling import compile_network
from sphynx.api.summarising import summarise
from sphynx.cli.main import main
from sphynx.data.open import open_data
from sphynx.program.cost.rates import REFERENCE
from sphynx.report.sources import read_sources
from sphynx.run.update import Update
from sphynx.space.design import Design
from sphynx.space.published_cells import SPHYNX
from sphynx.space.tally import Shape
from sphynx.train.job import Job
from sphynx.train.loop import train
from sphynx.train.recipe import load_recipe
from tests.compiler.frontend.onnx_models import plain_cnn, write
from tests.data.layouts import write_classes


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """runs/mine, trained for one epoch, and compiled/mine."""
    folder, data = tmp_path_factory.mktemp("work"), open_data("digits")
    design = Design(SPHYNX, 2, 3, (0, 1), Shape(*data.train.shape), data.classes, conv_stack="single")
    train(Job(design, data, load_recipe("smoke", {"epochs": 1}), folder / "runs" / "mine"))
    compile_network(folder / "runs" / "mine").save(folder / "compiled" / "mine")
    return folder


@pytest.fixture(autouse=True)
def no_calibration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Known rates, since measuring takes seconds and tests other things."""
    monkeypatch.setattr(rates, "kept_rates", lambda: REFERENCE)


def test_a_run_finds_its_program_and_asks_it(work: Path) -> None:
    run = work / "runs" / "mine"
    found = summarise([run], read_sources([run]), ask=3)
    compiled = Compiled.load(work / "compiled" / "mine")
    assert found is not None and found.judged is not None and found.relus == compiled.relus and found.missing == ()
    images = open_data("digits").test
    assert sum(map(sum, found.confusion)) == found.judged.images == len(images)
    right = sum(row[label] for label, row in enumerate(found.confusion))
    assert abs(right / len(images) - found.judged.accuracy) <= 2 / len(images)  # the same network, evaluated again
    drawn = images.sample(3)
    answers = compiled.infer(drawn.images.numpy()).argmax(1).tolist()
    assert [asked.answer for asked in found.asked] == [compiled.class_names[answer] for answer in answers]
    assert [asked.truth for asked in found.asked] == [images.class_names[label] for label in drawn.labels.tolist()]
    assert all(asked.exact for asked in found.asked)
    assert found.cost is not None and not found.cost.measured and found.cost.link == "LAN"


def test_what_is_not_known_is_said(work: Path, tmp_path: Path) -> None:
    run = tmp_path / "runs" / "mine"
    shutil.copytree(work / "runs" / "mine", run)
    found = summarise([run], read_sources([run]), data=str(tmp_path / "nowhere"))
    assert found is not None and found.asked == () and found.cost is None and found.judged is not None
    assert "no such file or folder" in found.missing[0] and f"sphynx compile {run}" in found.missing[1]


def test_a_picture_that_cannot_be_read_is_left_out_where_that_is_asked_for(tmp_path: Path) -> None:
    photos, run = tmp_path / "photos", tmp_path / "runs" / "mine"
    write_classes(photos, ("cat", "dog"), 10, 8)
    data = open_data(str(photos))
    design = Design(SPHYNX, 1, 2, (1,), Shape(*data.train.shape), data.classes, conv_stack="single")
    train(Job(design, data, load_recipe("smoke", {"epochs": 1}), run))
    (photos / "cat" / "bad.png").write_bytes(b"no picture")
    refused = summarise([run], read_sources([run]))
    assert refused is not None and "`skip_bad=True`" in refused.missing[0]
    told: list[Update] = []
    found = summarise([run], read_sources([run]), skip_bad=True, progress=told.append)
    assert found is not None and sum(map(sum, found.confusion)) == 4
    assert any("left out 1 image" in update.note for update in told)


def test_a_program_older_than_its_run_is_not_taken(work: Path) -> None:
    run, program = work / "runs" / "mine", work / "compiled" / "mine" / "program.json"
    before = program.stat()
    try:
        os.utime(program, (1.0, 1.0))
        found = summarise([run], read_sources([run]), ask=1)
        assert found is not None and found.asked == () and "not compiled" in found.missing[0]
    finally:
        os.utime(program, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_compiled_onnx_network_has_a_page_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(plain_cnn(), tmp_path / "mine.onnx")
    compile_network(file, calibrate="digits").save(tmp_path / "compiled" / "mine")
    page = tmp_path / "report.html"
    words = ["sphynx", "report", str(tmp_path / "compiled" / "mine"), "-o", str(page), "--ask", "2", "-q"]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    html = page.read_text()
    assert "Your network" in html and "the integer program" in html and "private latency, estimated" in html
    assert html.count("labelled ") == 2 and 'id="confusion"' in html
