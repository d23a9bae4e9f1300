"""A network is compiled with images that nobody labelled, checked, and its classes named by a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset
from typer.testing import CliRunner

import sphynx
from sphynx.cli.main import app
from sphynx.compiler.precision import Precision
from tests.compiler.frontend.onnx_models import Maker, plain_cnn, write

COARSE = Precision(8, 10)


def open_network(path: Path) -> Path:
    make = Maker(("n", 1, "height", "width"))
    x = make.node("Relu", make.conv("x", 1, 4, pads=[1, 1, 1, 1]))
    return write(make.model(make.dense(make.node("Flatten", make.node("GlobalAveragePool", x)), 4, 3)), path)


def test_without_labels_agreement_is_reported(tmp_path: Path) -> None:
    images = sphynx.open_data("digits").train.images.numpy()
    file = write(plain_cnn(), tmp_path / "mine.onnx")
    compiled = sphynx.compile_network(file, calibrate=images, precision=COARSE)
    assert compiled.judged is not None and compiled.judged.accuracy is None and (compiled.judged.same_class or 0) > 0.9
    assert compiled.judged.doubt is None and compiled.class_names == ()
    loaded = sphynx.Compiled.load(compiled.save(tmp_path / "compiled"))
    again = loaded.judge(images)
    assert again is not None and abs(again.error - compiled.judged.error) < 1e-4 and again.float_accuracy is None
    checked = loaded.check(images, images=10)
    assert checked.accuracy is None and checked.images == 10
    assert 0 <= (loaded.check("digits", images=10).accuracy or 0.0) <= 1  # labels are there


def test_loaders_with_labels_name_classes(tmp_path: Path) -> None:
    train = sphynx.open_data("digits").train
    loader = DataLoader(TensorDataset(train.images / 255, train.labels), batch_size=50)
    names = tuple(f"digit {number}" for number in range(10))
    file = write(plain_cnn(), tmp_path / "mine.onnx")
    compiled = sphynx.compile_network(
        file, calibrate=loader, precision=COARSE, class_names=names, warn=lambda _line: None
    )
    assert compiled.class_names == names
    assert compiled.judged is not None and compiled.judged.accuracy is not None


def test_labels_of_other_classes_are_left_out(tmp_path: Path) -> None:
    told: list[str] = []
    compiled = sphynx.compile_network(
        open_network(tmp_path / "mine.onnx"), calibrate="digits", precision=COARSE, warn=told.append
    )
    assert compiled.image == (1, 8, 8)  # the data's, since the file leaves it open
    assert compiled.judged is not None and compiled.judged.accuracy is None
    assert "its 10 classes are not the network's 3 outputs" in told[0]


def test_a_file_is_compiled_and_checked_by_flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    open_network(tmp_path / "mine.onnx")
    np.save("images.npy", np.random.default_rng(0).integers(0, 256, (30, 1, 6, 7)).astype(np.uint8))
    Path("names.txt").write_text("ant\nbee\ncow\n")
    flags = ["--calibrate", "images.npy", "--input-shape", "1x6x7", "--class-names", "names.txt"]
    made = CliRunner().invoke(app, ["compile", "mine.onnx", *flags, "-o", "compiled"])
    assert made.exit_code == 0, made.output
    assert "same class as the float network" in " ".join(made.output.split()) and "accuracy" not in made.output
    assert sphynx.Compiled.load("compiled").class_names == ("ant", "bee", "cow")
    checked = CliRunner().invoke(app, ["check", "compiled"])
    assert checked.exit_code == 0 and "no labels" in checked.output and "same class" in checked.output


def test_a_module_takes_its_shape_from_the_images() -> None:
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(40, 6))
    images = np.random.default_rng(0).integers(0, 256, (20, 1, 6, 7)).astype(np.uint8)
    assert sphynx.compile_network(module, calibrate=images, precision=COARSE).image == (1, 6, 7)
