"""Trained networks as ONNX files: other runtimes and our own reader compute what torch computes."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
import pytest
import torch
from onnx.reference import ReferenceEvaluator
from torch import nn

import sphynx
from sphynx.compiler.frontend.export.module import read_module
from sphynx.compiler.frontend.onnx.file import read_network
from sphynx.compiler.frontend.onnx.write import write_onnx
from sphynx.network.build import build_network
from sphynx.network.trained import TrainedNetwork
from sphynx.program.interpret import evaluate
from sphynx.space.design import Design
from sphynx.space.files import AnyDesign
from sphynx.space.micro import MicroDesign
from sphynx.space.published_cells import PC_DARTS, SPHYNX
from sphynx.space.reference import ResNet18Design, Vgg11Design, WideResNetDesign
from sphynx.space.tally import Shape
from tests.compiler.frontend.torch_modules import CASES, IMAGE, Body, with_statistics

pytestmark = pytest.mark.filterwarnings("ignore::Warning:torch")
MEAN, STD = (0.4, 0.5, 0.6), (0.2, 0.25, 0.3)
SMALL = Shape(3, 8, 8)
DESIGNS: dict[str, AnyDesign] = {
    "cells": Design(SPHYNX, 2, 2, (1,), SMALL, 10, conv_stack="paper"),
    "cells, single": Design(SPHYNX, 1, 2, (0,), SMALL, 5, conv_stack="single"),
    "stream": sphynx.plan("1k", family="stream", image=SMALL, classes=10).design,
    "resnet18": ResNet18Design(2, SMALL, 10, "small"),
    "vgg11": Vgg11Design(2, Shape(3, 32, 32), 10, hidden=8),
    "wide resnet": WideResNetDesign(10, 1, SMALL, 10),
    "micro cells": MicroDesign(PC_DARTS, 2, 3, SMALL, 10),
}


class Written(NamedTuple):
    design: AnyDesign
    network: nn.Module
    path: Path


@pytest.fixture(scope="module", params=DESIGNS)
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Written:
    torch.manual_seed(0)
    design, path = DESIGNS[request.param], tmp_path_factory.mktemp("written") / "network.onnx"
    network = with_statistics(build_network(design)).eval()
    sphynx.export_network(TrainedNetwork(design.name, network, MEAN, STD), path)  # type: ignore[arg-type]
    return Written(design, network, path)


def by_torch(network: nn.Module, pixels: np.ndarray) -> np.ndarray:
    mean, std = (np.array(each).reshape(-1, 1, 1) for each in (MEAN, STD))
    with torch.no_grad():
        return network(torch.from_numpy((pixels / 255 - mean) / std).float()).numpy()


def test_our_own_reader_takes_them(written: Written) -> None:
    design, network, path = written
    pixels = np.random.default_rng(0).integers(0, 256, (1, *design.image))
    expected = by_torch(network, pixels)
    found, mean, std = read_network(path), (0.0,) * 3, (1.0,) * 3
    fused = found.trace(mean, std, cuts=found.trace(mean, std, outline=True).joints)  # small kernels, soon evaluated
    got = evaluate(fused.graph, fused.weights, pixels.astype(np.float64), lambda *_: None)
    assert np.abs(got - expected).max() < 1e-4 * (1 + np.abs(expected).max())


def test_onnx_runtime_agrees(written: Written) -> None:
    runtime = pytest.importorskip("onnxruntime")
    design, network, path = written
    pixels = np.random.default_rng(0).integers(0, 256, (3, *design.image))
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (got,) = session.run(None, {"image": (pixels / 255).astype(np.float32)})
    expected = by_torch(network, pixels)
    assert np.abs(got - expected).max() < 1e-4 * (1 + np.abs(expected).max())


@pytest.mark.parametrize(
    "case", ["shuffle", "halves", "adaptive", "padded average", "prelu", "bilinear", "constants", "sums of rows"]
)
def test_other_operators(case: str, tmp_path: Path) -> None:
    """ONNX's reference evaluator, on two images at once."""
    torch.manual_seed(1)
    network, path = Body(CASES[case]).eval(), tmp_path / "network.onnx"
    write_onnx(read_module(network, Shape(*IMAGE)).graph, path, MEAN, STD)
    pixels = np.random.default_rng(0).integers(0, 256, (2, *IMAGE))
    (got,) = ReferenceEvaluator(onnx.load(path)).run(None, {"image": (pixels / 255).astype(np.float32)})
    assert np.abs(got - by_torch(network, pixels)).max() < 1e-5


def test_what_onnx_has_no_word_for(tmp_path: Path) -> None:
    graph = read_module(Body(nn.SiLU()), Shape(*IMAGE), approximate=True).graph
    with pytest.raises(sphynx.InputError, match="Body: Swish cannot be written for opset 17"):
        write_onnx(graph, tmp_path / "network.onnx", MEAN, STD)
