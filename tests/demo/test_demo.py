"""The demonstration's page and tables from made-up answers, and its pictures; `make demo` plays it whole."""

import base64
import io
import json
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from sphynx.cli.demo import _print, _to_json
from sphynx.data.sample_pictures import sample_photographs
from sphynx.demo.page import COLUMNS, cost_rows, demo_page, noise_pixels
from sphynx.demo.scenes import SHIPPED_MODEL, Answer, Question, Scene, has_shipped_scene
from sphynx.program.ir import INPUT, Linear, Output, Program, Term
from sphynx.report.summary import Judged
from sphynx.report.tables import picture_url
from sphynx.service.prediction import Prediction
from sphynx.space.tally import Shape
from sphynx.zoo.shipped import model_names


def two_classes() -> Program:
    steps = (Linear("logits", (Term(INPUT, 8, 8),), Shape(2, 1, 1), 0, 24),)
    return Program(Shape(1, 8, 8), steps, 24, 8, outputs=(Output("logits", "logits", class_names=("3", "8")),))


def answer(backend: str, online_seconds: float, *, equal: bool = True, truth: str = "3") -> Answer:
    question = Question("digit <0>", np.arange(64, dtype=np.uint8).reshape(1, 8, 8), truth=truth)
    private = Prediction(
        two_classes(),
        np.array([3, 1]),
        backend,
        1,
        0.5,
        2_000_000,
        online_seconds,
        30_000,
        29,
    )
    return Answer(question, private, "3", equal, bytes(range(150)))


def scene() -> Scene:
    answers = (answer("gmw", 0.02), answer("gmw", 0.04), answer("gc", 0.08))
    return Scene("Digits", 1024, 25, 0.004, answers, Judged(0.99, 359, "fp32"))


def test_costs_are_medians_per_protocol() -> None:
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in cost_rows(scene())]
    assert [row["backend"] for row in rows] == ["GMW", "garbled circuits"]
    assert rows[0][">online"] == "30 ms" and rows[1][">online"] == "80 ms"
    assert rows[0][">exact"] == "2 of 2" and rows[0][">in the clear"] == "4 ms"


def test_page_is_one_file_and_escapes_names() -> None:
    html = demo_page([replace(scene(), answers=tuple(answer(kind, 0.02, truth="") for kind in ("gmw", "gc")))])
    assert "digit &lt;0&gt;" in html and "digit <0>" not in html
    assert "2 equal to the integer network" in html
    assert "http://" not in html.replace("http://www.w3.org", "") and "https://" not in html


def test_labels_accuracy_and_wrong_answers_are_shown() -> None:
    mixed = replace(scene(), answers=(answer("gmw", 0.02), answer("gmw", 0.02, truth="8"), answer("gc", 0.08)))
    html = demo_page([mixed])
    assert html.count("<em>wrong</em>") == 1 and "labelled 8" in html and "1 of 2 private answers are right" in html
    assert "99.00 %" in html and "97.3 to 99.6 %" in html
    assert html.count("GMW: each side") == html.count("Garbled circuits: the server") == 1


def test_who_sees_what_draws_the_bytes_of_the_wire() -> None:
    received = scene().answers[0].received
    assert picture_url(noise_pixels(received)) in demo_page([scene()])
    assert noise_pixels(received).tobytes() == received[:144]  # 12 by 12 of them


def test_a_wrong_answer_is_not_hidden() -> None:
    wrong = replace(scene(), answers=(*scene().answers[:2], answer("gc", 0.08, equal=False)))
    assert not wrong.all_equal
    assert "0 of 1" in demo_page([wrong])


@pytest.mark.parametrize("channels", [1, 3])
def test_pictures_travel_inside_the_page(channels: int) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (channels, 8, 6)).astype(np.uint8)
    head, _, body = picture_url(pixels).partition(",")
    assert head == "data:image/png;base64"
    shown = np.asarray(Image.open(io.BytesIO(base64.b64decode(body)))).reshape(8, 6, channels)
    assert np.array_equal(shown.transpose(2, 0, 1), pixels)


def test_photographs_and_the_shipped_model_are_there() -> None:
    assert len(sample_photographs()) >= 2
    assert has_shipped_scene() and SHIPPED_MODEL in model_names()


def test_class_names_are_written_as_people_write_them(capsys: pytest.CaptureFixture[str]) -> None:
    tree = replace(two_classes(), outputs=(Output("logits", "logits", class_names=("pine_tree", "8")),))
    answers = tuple(
        replace(one, private=replace(one.private, program=tree), plaintext_label="pine_tree")
        for one in (answer("gmw", 0.02, truth="pine_tree"), answer("gc", 0.08, truth="pine_tree"))
    )
    shown = replace(scene(), answers=answers)
    _print(shown)
    for text in (capsys.readouterr().out, demo_page([shown])):
        assert "pine tree" in text and "pine_tree" not in text
    assert '"pine_tree"' in json.dumps(_to_json(shown))
