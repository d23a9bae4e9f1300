"""A softmax or sigmoid at the end is the client's, also where a reshape that moves nothing follows it."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from sphynx.compiler.frontend.export.module import read_module
from sphynx.compiler.frontend.onnx.file import read_network
from sphynx.compiler.frontend.operators.network import OperatorNetwork
from sphynx.errors import InputError
from sphynx.program.interpret import evaluate
from sphynx.program.outputs import Output
from sphynx.space.tally import Shape

IMAGE = Shape(3, 4, 4)


class Ended(nn.Module):
    """Logits as a map of one pixel, and what comes after them."""

    def __init__(self, end: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers, self.end = nn.Conv2d(3, 5, 4), end

    def forward(self, x: Tensor) -> Tensor:
        return self.end(self.layers(x))


ENDS: dict[str, tuple[Callable[[Tensor], Tensor], str]] = {
    "flatten": (lambda x: x.softmax(1).flatten(1), "softmax"),
    "of a vector": (lambda x: x.flatten(1).softmax(1).flatten(1), "softmax"),
    "reshape by the batch": (lambda x: x.softmax(1).view(x.size(0), -1), "softmax"),
    "squeeze twice": (lambda x: x.sigmoid().squeeze(3).squeeze(2), "sigmoid"),
    "identity": (lambda x: nn.Identity()(x.log_softmax(1)).reshape(-1, 5), "log_softmax"),
    "unsqueeze and back": (lambda x: x.flatten(1).softmax(1).unsqueeze(2).flatten(1), "softmax"),
    "dropout": (lambda x: nn.functional.dropout(x.softmax(1), training=False).flatten(1), "softmax"),
}


def read(module: nn.Module, reader: str, folder: Path) -> OperatorNetwork:
    if reader == "torch":
        return read_module(module, IMAGE)
    path = folder / "network.onnx"
    example = torch.zeros(1, *IMAGE)
    axes = {"x": {0: "n"}}
    torch.onnx.export(module, (example,), path, dynamo=False, input_names=["x"], dynamic_axes=axes)
    return read_network(path)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("reader", ["torch", "onnx"])
@pytest.mark.parametrize("case", ENDS)
def test_what_moves_nothing_may_follow(case: str, reader: str, tmp_path: Path) -> None:
    end, final = ENDS[case]
    module = Ended(end).eval()
    network = read(module, reader, tmp_path)
    assert network.graph.ends[0].final == final
    fused = network.trace((0.0,) * 3, (1.0,) * 3)
    pixels = np.random.default_rng(0).integers(0, 256, (2, *IMAGE))
    logits = evaluate(fused.graph, fused.weights, pixels.astype(np.float64), lambda *_: None).reshape(2, 5)
    with torch.no_grad():
        expected = torch.cat([module(torch.from_numpy(each[None] / 255).float()) for each in pixels]).numpy()
    assert np.abs(Output("logits", "", final=network.graph.ends[0].final).finished(logits) - expected).max() < 1e-5


INSIDE: dict[str, Callable[[Tensor], Tensor]] = {
    "turned around": lambda x: x.softmax(1).flip(1).flatten(1),
    "read twice": lambda x: x.softmax(1).flatten(1) + x.softmax(1).flatten(1).flip(1),
    "computed on": lambda x: 2 * x.softmax(1).flatten(1),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("reader", ["torch", "onnx"])
@pytest.mark.parametrize("case", INSIDE)
def test_what_computes_or_moves_may_not(case: str, reader: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Softmax cannot be compiled"):
        read(Ended(INSIDE[case]).eval(), reader, tmp_path)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("reader", ["torch", "onnx"])
def test_a_softmax_over_something_else_than_classes_is_refused_behind_a_reshape_too(
    reader: str, tmp_path: Path
) -> None:
    module = Ended(lambda x: torch.cat([x, -x], 3).softmax(3).flatten(1))
    with pytest.raises(InputError, match="its softmax is along axis 3 of 1x5x1x2, not over the classes"):
        read(module.eval(), reader, tmp_path).trace((0.0,) * 3, (1.0,) * 3, outline=True)
