"""Compiling tells of its progress, and whoever stops it finds nothing written."""

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import sphynx
from sphynx.cli.main import app
from sphynx.compiler.precision import Precision
from sphynx.errors import SphynxError
from tests.compiler.frontend.onnx_models import plain_cnn, write

IMAGES = np.random.default_rng(0).integers(0, 256, (40, 1, 8, 8)).astype(np.uint8)


def test_every_stage_is_told_to_its_end(tmp_path: Path) -> None:
    updates: list[sphynx.Update] = []
    path = write(plain_cnn(), tmp_path / "mine.onnx")
    sphynx.compile_network(path, calibrate=IMAGES, precision=Precision(8, 10), progress=updates.append)
    stages = list(dict.fromkeys(update.stage for update in updates))
    assert stages[:4] == [
        "choosing where to cut",
        "fusing",
        "measuring ranges",
        "trying weights of 8 bits on 40 inputs",
    ]
    assert [update.done for update in updates if update.stage == "measuring ranges"] == [40]
    tried = [update for update in updates if update.stage.startswith("trying")]
    assert [update.done for update in tried] == list(range(tried[0].total))


def test_whoever_stops_it_finds_nothing_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(plain_cnn(), tmp_path / "mine.onnx")
    np.save("images.npy", IMAGES)

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("sphynx.compiler.compile.measure_parts", interrupted)
    ran = CliRunner().invoke(app, ["compile", "mine.onnx", "--calibrate", "images.npy", "-o", "compiled"])
    assert isinstance(ran.exception, SphynxError) and "nothing was written" in str(ran.exception)
    assert not Path("compiled").exists()
