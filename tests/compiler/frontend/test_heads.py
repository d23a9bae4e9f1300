"""Outputs as networks have them: several, maps in any layout, values inside. torch and ONNX Runtime are the judges."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import sphynx
from sphynx.compiler.precision import Precision
from sphynx.errors import InputError
from tests.compiler.frontend.onnx_models import Maker, write

COARSE = Precision(8, 10)
IMAGES = np.random.default_rng(0).integers(0, 256, (40, 1, 8, 8)).astype(np.uint8)


class Heads(nn.Module):
    """A detector's head with channels last, classes, a map behind sigmoids, one of scores for each pixel."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.body = nn.Sequential(nn.Conv2d(1, 6, 3, stride=2, padding=1), nn.ReLU())
        self.boxes, self.heat, self.parts = (
            nn.Conv2d(6, 3, 1),
            nn.ConvTranspose2d(6, 2, 2, stride=2),
            nn.Conv2d(6, 4, 1),
        )
        self.classes = nn.Linear(96, 5)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        x = self.body(x)
        return {
            "boxes": self.boxes(x).permute(0, 2, 3, 1),
            "classes": self.classes(x.flatten(1)).softmax(1),
            "heat": self.heat(x).sigmoid(),
            "parts": self.parts(x).softmax(1),
        }


SHAPES = {"boxes": (4, 4, 3), "classes": (5,), "heat": (2, 8, 8), "parts": (4, 4, 4)}


def exported(module: nn.Module, path: Path) -> Path:
    torch.onnx.export(module, (torch.zeros(1, 1, 8, 8),), path, dynamo=False, input_names=["x"], output_names=[*SHAPES])
    return path


def differences(compiled: sphynx.Compiled, wanted: Mapping[str, Tensor]) -> dict[str, float]:
    found = compiled.outputs(IMAGES)
    return {name: float(np.abs(array - wanted[name].numpy()).max() / array.std()) for name, array in found.items()}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["module", "onnx", "pt2"])
def test_several_outputs_are_one_program(kind: str, tmp_path: Path) -> None:
    module = Heads().eval()
    network: nn.Module | Path = module
    if kind == "onnx":
        pytest.importorskip("onnxruntime")
        network = exported(module, tmp_path / "heads.onnx")
    elif kind == "pt2":
        network = tmp_path / "heads.pt2"
        torch.export.save(torch.export.export(module, (torch.zeros(1, 1, 8, 8),)), network)
    names = [str(number) for number in range(4)] if kind == "pt2" else [*SHAPES]
    compiled = sphynx.compile_network(network, calibrate=IMAGES, precision=COARSE)
    assert [output.name for output in compiled.program.outputs] == names
    with torch.no_grad():
        wanted = dict(zip(names, module(torch.from_numpy(IMAGES / 255).float()).values(), strict=True))
    assert max(differences(compiled, wanted).values()) < 0.2
    judged = compiled.judged
    assert judged is not None and [output.name for output in judged.outputs] == names and judged.error < 0.05
    (answer,) = compiled.infer_privately(IMAGES[:1])
    outputs = compiled.outputs(IMAGES[:1])
    assert [array.shape for array in answer.outputs.values()] == [*SHAPES.values()]
    assert all(np.array_equal(array, outputs[name][0]) for name, array in answer.outputs.items())
    assert (
        compiled.program.made_from == {"module": "torch Heads", "onnx": "onnx heads.onnx", "pt2": "pt2 heads.pt2"}[kind]
    )


@pytest.mark.filterwarnings("ignore")
def test_heads_choose_outputs_in_their_order(tmp_path: Path) -> None:
    module = Heads().eval()
    for network in (module, exported(module, tmp_path / "heads.onnx")):
        compiled = sphynx.compile_network(network, calibrate=IMAGES, precision=COARSE, heads=("parts", "heat"))
        assert [output.name for output in compiled.program.outputs] == ["parts", "heat"]
        assert compiled.judged is not None and compiled.judged.same_class is None and compiled.judged.fault is None
        with pytest.raises(InputError, match=r"it has no (value|output) hats"):
            sphynx.compile_network(network, calibrate=IMAGES, heads=("hats",))


def test_a_value_inside_a_file_may_be_a_head(tmp_path: Path) -> None:
    """Nothing behind it need be known: here a LogSoftmax that a sum reads."""
    make = Maker((1, 1, 8, 8))
    x = make.node("Relu", make.conv("x", 1, 4, pads=[1, 1, 1, 1]))
    inner = make.conv(x, 4, 3)
    path = write(
        make.model(make.node("ReduceSum", make.node("LogSoftmax", inner, axis=1), make.constant([2]))),
        tmp_path / "x.onnx",
    )
    with pytest.raises(InputError, match="LogSoftmax cannot be compiled"):
        sphynx.compile_network(path, calibrate=IMAGES)
    found = sphynx.inspect_network(path)
    assert found.blockers and found.heads == (inner,)
    compiled = sphynx.compile_network(path, calibrate=IMAGES, precision=COARSE, heads=found.heads)
    assert (
        compiled.judged is not None
        and compiled.judged.read_error == 0
        and compiled.outputs(IMAGES)[inner].shape == (40, 3, 6, 6)
    )


def test_an_output_that_another_layer_reads_is_kept_apart(tmp_path: Path) -> None:
    make = Maker((1, 1, 8, 8))
    first = make.node("GlobalAveragePool", make.conv("x", 1, 4, pads=[1, 1, 1, 1]))
    second = make.node("GlobalAveragePool", first)
    path = write(make.model(make.conv(make.node("Relu", second), 4, 2, 1)), tmp_path / "x.onnx")
    compiled = sphynx.compile_network(path, calibrate=IMAGES, precision=COARSE, heads=(first, second))
    one, two = compiled.outputs(IMAGES).values()
    assert one.shape == two.shape == (40, 4) and np.abs(one - two).max() < 0.02 * one.std()
