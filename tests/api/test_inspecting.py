"""Looking at a network says what compiling finds later: its counts if it compiles, all its faults if it does not."""

from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import sphynx
from sphynx.cli.main import app
from sphynx.compiler.precision import Precision
from tests.compiler.frontend.onnx_models import Maker, plain_cnn, write


def faulty(path: Path) -> Path:
    """Three faults in a row: a smooth function, an operator that is not known, a layer that does not fit."""
    make = Maker(("n", 1, "height", 8))
    x = make.node("Sigmoid", make.conv("x", 1, 4, pads=[1, 1, 1, 1]))
    x = make.node("Sign", make.node("Sigmoid", x))
    y = make.node("Conv", make.conv("x", 1, 4), make.normal(3, 5, 3, 3))
    x = make.node("Add", make.node("GlobalAveragePool", x), make.node("GlobalAveragePool", y))
    return write(make.model(make.dense(make.node("Flatten", x), 4, 3)), path)


def test_counts_are_those_of_the_compiled_network(tmp_path: Path) -> None:
    path = write(plain_cnn(), tmp_path / "mine.onnx")
    found = sphynx.inspect_network(path)
    compiled = sphynx.compile_network(
        path, calibrate=np.zeros((4, 1, 8, 8), np.uint8) + np.arange(4, dtype=np.uint8)[:, None, None, None] * 60,
        precision=Precision(12, 10, 11), accept_error=100,
    )  # fmt: skip
    assert found.can_be_compiled and found.blockers == () and found.image == (1, 8, 8)
    assert found.inputs == ("x [n, 1, 8, 8]",) and found.relus == compiled.relus
    assert {(cost.backend, cost.link) for cost in found.costs} == {
        (backend, link) for backend in ("gc", "gmw") for link in ("lan", "wan")
    }
    assert all(cost.online_seconds > 0 and cost.offline_bytes > 0 for cost in found.costs)
    assert found.weight_bytes > 0 and found.he_products > 0


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    found = sphynx.inspect_network(faulty(tmp_path / "faulty.onnx"))
    told = [f"{one.what}; {one.where}; {one.remedy}" for one in found.blockers]
    assert len(told) == 4 and not found.can_be_compiled
    assert "has open sizes" in told[0] and "`input_shape=1x224x8`" in told[0]
    assert "Sigmoid cannot be compiled exactly" in told[1] and "2 times, first in node sigmoid1" in told[1]
    assert "Sign cannot be compiled" in told[2]
    assert "Conv has weights of 3x5x3x3" in told[3]
    allowed = sphynx.inspect_network(tmp_path / "faulty.onnx", approximate=True, input_shape=(1, 8, 8))
    assert [one.what.split()[0] for one in allowed.blockers] == ["Sign", "Conv"]


def test_files_that_cannot_be_read_and_networks_of_torch(tmp_path: Path) -> None:
    (tmp_path / "bad.onnx").write_bytes(b"no network")
    (blocker,) = sphynx.inspect_network(tmp_path / "bad.onnx").blockers
    assert "not a valid ONNX file" in blocker.what
    with pytest.raises(sphynx.InputError, match="there is no such file"):
        sphynx.inspect_network(tmp_path / "missing.onnx")
    module = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(72, 3))
    assert sphynx.inspect_network(module, example=torch.zeros(1, 1, 8, 8)).relus == 72
    with pytest.raises(sphynx.InputError, match="does not tell the shape"):
        sphynx.inspect_network(module)
    assert sphynx.inspect_network(torch.nn.LSTM(8, 3), example=torch.zeros(1, 1, 8, 8)).blockers


def test_the_verb_and_what_compile_prints_of_a_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    faulty(tmp_path / "faulty.onnx")
    write(plain_cnn(), tmp_path / "mine.onnx")
    run = CliRunner().invoke
    looked = run(app, ["inspect", "faulty.onnx", "--input-shape", "1x8x8"])
    assert looked.exit_code == 1 and "--approximate" in looked.output and "Sign cannot be compiled" in looked.output
    refused = run(app, ["compile", "faulty.onnx", "--input-shape", "1x8x8", "--calibrate", "digits", "-o", "out"])
    assert refused.exit_code != 0 and "What keeps faulty from being compiled" in refused.output
    fine = run(app, ["inspect", "mine.onnx"])
    assert fine.exit_code == 0 and "ReLUs" in fine.output and "gmw" in fine.output
    assert '"relus"' in run(app, ["inspect", "mine.onnx", "--json"]).output
