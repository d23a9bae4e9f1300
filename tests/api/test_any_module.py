"""A torch module of the user's own, compiled by `import sphynx`; and the same module from a .pt2 file."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import sphynx
from sphynx.compiler.precision import Precision

pytestmark = pytest.mark.filterwarnings("ignore::Warning:torch")


def module() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU6(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 10)
    )


def test_a_module_and_its_file(tmp_path: Path) -> None:
    data, example = sphynx.open_data("digits"), torch.zeros(1, 1, 8, 8)
    compiled = sphynx.compile_network(module().train(), example=example, calibrate=data, mean=0.0, std=1.0)
    assert compiled.name == "Sequential" and compiled.relus == 2 * 4 * 16 and compiled.comparisons == 3 * 4 * 16
    pictures = data.test.images[:20].numpy()
    with torch.no_grad():
        expected = module().eval()(data.test.images[:20] / 255).numpy()
    assert (compiled.infer(pictures).argmax(1) == expected.argmax(1)).mean() >= 0.95
    assert compiled.judged is not None and compiled.judged.by == "torch" and compiled.judged.error < 0.05
    loaded = sphynx.Compiled.load(compiled.save(tmp_path / "compiled"))
    judged = loaded.judge()
    assert judged is not None and abs(judged.error - compiled.judged.error) < 1e-4
    assert loaded.judge(replace(data, train=data.test)) is None  # these are other images
    torch.export.save(torch.export.export(module().eval(), (example,)), tmp_path / "mine.pt2")
    by_file = sphynx.compile_network(tmp_path / "mine.pt2", calibrate=data)
    assert by_file.name == "mine"
    assert (by_file.infer(pictures) == compiled.infer(pictures)).all()


def test_a_module_is_normalised_as_its_file_is_and_guessing_is_said(tmp_path: Path) -> None:
    data, told = sphynx.open_data("digits"), list[str]()
    compiled = sphynx.compile_network(module(), calibrate=data, precision=Precision(8, 10), warn=told.append)
    torch.export.save(torch.export.export(module().eval(), (torch.zeros(1, 1, 8, 8),)), tmp_path / "mine.pt2")
    by_file = sphynx.compile_network(
        tmp_path / "mine.pt2", calibrate=data, precision=Precision(8, 10), warn=told.append
    )
    pictures = data.test.images[:5].numpy()
    assert (by_file.infer(pictures) == compiled.infer(pictures)).all()
    assert [line.partition(":")[0] for line in told] == ["Sequential", "mine"]  # its weights are random
    assert "guessing among 10 classes" in told[0] and "`mean` and `std`" in told[0]


def test_a_damaged_file_is_refused_in_one_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.export.save(torch.export.export(module().eval(), (torch.zeros(1, 1, 8, 8),)), tmp_path / "mine.pt2")
    whole = (tmp_path / "mine.pt2").read_bytes()
    (tmp_path / "cut.pt2").write_bytes(whole[: len(whole) // 2])
    monkeypatch.setattr(logging.getLogger("torch.export"), "handlers", [caplog.handler])
    with pytest.raises(sphynx.InputError, match=r"it is not a valid \.pt2 file"):
        sphynx.compile_network(tmp_path / "cut.pt2", calibrate="digits")
    assert "torch.export" not in {record.name for record in caplog.records}  # which logs its traceback


def test_what_is_missing_is_named() -> None:
    weights: Any = module().state_dict()
    with pytest.raises(sphynx.InputError, match="`network`: a state_dict holds weights") as refused:
        sphynx.compile_network(weights, calibrate="digits")
    assert "load_state_dict" in refused.value.remedy
    nothing: Any = None
    with pytest.raises(sphynx.InputError, match="`network`: NoneType is not a network"):
        sphynx.compile_network(nothing)
    with pytest.raises(sphynx.InputError, match="Sequential: a torch module does not name its training data"):
        sphynx.compile_network(module())
    with pytest.raises(sphynx.InputError, match=r"`example`: its shape is \[1, 3, 8, 8\]"):
        sphynx.compile_network(module(), example=torch.zeros(1, 3, 8, 8), calibrate="digits")
    with pytest.raises(sphynx.InputError, match="Sequential: Selu cannot be compiled"):
        sphynx.compile_network(nn.Sequential(module(), nn.SELU()), calibrate="digits")
