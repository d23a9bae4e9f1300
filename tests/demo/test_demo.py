"""The demonstration's page and tables from made-up answers, and its pictures; `make demo` plays it whole."""

import base64
import io
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from sphynx.data.sample_pictures import sample_photographs
from sphynx.demo.page import COLUMNS, cost_rows, demo_page
from sphynx.demo.scenes import SHIPPED_MODEL, Answer, Question, Scene, has_shipped_scene
from sphynx.report.tables import picture_url
from sphynx.service.prediction import Prediction
from sphynx.space.shipped import model_names


def answer(backend: str, online_seconds: float, *, equal: bool = True) -> Answer:
    question = Question("digit <0>", np.arange(64, dtype=np.uint8).reshape(1, 8, 8), truth="3")
    private = Prediction(
        ("3", "8"),
        (0.9, 0.1),
        np.array([3.0, 1.0]),
        np.array([3, 1]),
        backend,
        1,
        0.5,
        2_000_000,
        online_seconds,
        30_000,
        29,
    )
    return Answer(question, private, "3", equal)


def scene() -> Scene:
    return Scene("Digits", 1024, 25, 0.004, (answer("gmw", 0.02), answer("gmw", 0.04), answer("gc", 0.08)))


def test_costs_are_medians_per_protocol() -> None:
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in cost_rows(scene())]
    assert [row["ReLU by"] for row in rows] == ["gmw", "gc"]
    assert rows[0][">online ms"] == "30.0" and rows[1][">online ms"] == "80.0"
    assert rows[0]["exact"] == "2 of 2" and rows[0][">in the clear ms"] == "4.0"


def test_page_is_one_file_and_escapes_names() -> None:
    html = demo_page([scene()])
    assert "digit &lt;0&gt;" in html and "digit <0>" not in html
    assert "3 equal to the integer oracle" in html
    assert "http://" not in html.replace("http://www.w3.org", "") and "https://" not in html


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
