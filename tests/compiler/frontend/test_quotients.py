"""Quotients, softmax and layer norm inside a network: compared with torch, and asked by two processes."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from sphynx.compiler.compile import compile_walk
from sphynx.compiler.frontend.export.module import read_module
from sphynx.compiler.frontend.onnx.file import read_network
from sphynx.compiler.precision import Precision
from sphynx.compiler.settings import CompileSettings
from sphynx.errors import InputError
from sphynx.program.interpret import evaluate, interpret
from sphynx.space.tally import Shape
from tests.compiler.frontend.against_torch import MEAN, STD, assert_two_processes_agree, pixels
from tests.compiler.frontend.onnx_models import Maker, write
from tests.compiler.frontend.test_onnx_operators import exported
from tests.compiler.frontend.torch_modules import IMAGE, Body, Call

pytestmark = pytest.mark.filterwarnings("ignore::Warning:torch")  # its exporter warns of its own successor


class Attention(nn.Module):
    """One layer as vision transformers have it, of two heads, with layer norm before and a shortcut."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.norm, self.all = nn.LayerNorm(width, eps=0.05), nn.Linear(width, 3 * width)
        self.end = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        patches = x[:, :, ::2, ::2].flatten(2).transpose(1, 2)
        asked, keys, values = self.all(self.norm(patches)).reshape(1, 12, 3, 2, 2).permute(2, 0, 3, 1, 4).unbind(0)
        shares = (asked @ keys.transpose(-2, -1) / 2**0.5).softmax(-1)
        return patches + self.end((shares @ values).transpose(1, 2).reshape(1, 12, 4))


class BatchBehind(nn.Module):
    """torch's own layer, which puts the batch behind the patches, and a network that keeps it there."""

    def __init__(self, *, batch_first: bool, width: int = 4) -> None:
        super().__init__()
        self.heads = nn.MultiheadAttention(width, 2, batch_first=batch_first)
        self.norm, self.ends, self.batch_first = nn.LayerNorm(width, eps=0.05), nn.Linear(width, width), batch_first

    def forward(self, x: Tensor) -> Tensor:
        patches = x[:, :, ::2, ::2].flatten(2).permute((0, 2, 1) if self.batch_first else (2, 0, 1))
        found = self.norm(patches + self.heads(patches, patches, patches, need_weights=False)[0])
        y: Tensor = torch.relu(self.ends(found)) + found.mean(1 if self.batch_first else 0, keepdim=True)
        return y if self.batch_first else y.permute(1, 0, 2)


def normed_by_hand(x: Tensor) -> Tensor:
    """Layer norm as older exporters spell it."""
    centred = x - x.mean(1, keepdim=True)
    return centred / (centred.pow(2).mean(1, keepdim=True) + 0.1).sqrt()


QUOTIENTS: dict[str, Callable[[], nn.Module]] = {
    "softmax of channels": lambda: Call(lambda _, x: x * (3 * x).softmax(1)),
    "softmax of columns": lambda: Call(lambda _, x: x + (3 * x).softmax(3)),
    "layer norm of channels": lambda: Call(
        lambda m, x: m.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2), norm=nn.LayerNorm(4, eps=0.1)
    ),
    "group norm": lambda: nn.GroupNorm(2, 4, eps=0.1),
    "instance norm": lambda: nn.InstanceNorm2d(4, eps=0.1, affine=True),
    "by hand": lambda: Call(lambda _, x: normed_by_hand(x)),
    "a quotient": lambda: Call(lambda _, x: (x + 0.2) / (x.mean((2, 3), keepdim=True) + 1)),
    "a reciprocal": lambda: Call(lambda _, x: 2 / (x + 1)),
    "a root": lambda: Call(lambda _, x: (x + 0.1).sqrt()),
    "logarithms": lambda: Call(lambda _, x: (x + 0.1).log() + x.exp()),
    "attention": Attention,
    "torch's heads": lambda: BatchBehind(batch_first=True),
    "torch's heads, the batch behind": lambda: BatchBehind(batch_first=False),
    "attention by torch": lambda: Call(lambda _, x: functional.scaled_dot_product_attention(3 * x, x, 1 - x)),
}


def network(quotient: str) -> nn.Module:
    torch.manual_seed(4)
    made = Body(QUOTIENTS[quotient]())
    for module in made.modules():
        if isinstance(module, nn.LayerNorm | nn.GroupNorm | nn.InstanceNorm2d):
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.uniform_(module.bias, -0.5, 0.5)
    return made.eval()


@pytest.mark.parametrize("quotient", QUOTIENTS)
@pytest.mark.parametrize("by", ["ONNX", "torch.export"])
def test_fused_they_equal_torch(quotient: str, by: str, tmp_path: Path) -> None:
    made = network(quotient)
    if by == "ONNX":
        found = read_network(exported(made, tmp_path / "network.onnx"), approximate=True)
    else:
        found = read_module(made.double(), Shape(*IMAGE), approximate=True)
    with torch.no_grad():
        expected = np.concatenate([made(torch.from_numpy(one[None] / 255)).numpy() for one in pixels(3)])
    fused = found.trace(MEAN, STD)
    assert fused.graph == found.trace(MEAN, STD, outline=True).graph
    got = evaluate(fused.graph, fused.weights, pixels(3).astype(np.float64), lambda *_: None)
    assert np.abs(got - expected).max() < 1e-6


@pytest.mark.parametrize("quotient", ["attention", "by hand"])
def test_two_processes_get_the_oracles_answers(quotient: str, tmp_path: Path) -> None:
    made = network(quotient)
    found = read_network(exported(made, tmp_path / "network.onnx"), approximate=True)
    settings = CompileSettings(precision=Precision(12, 12, 11), knees=12)
    quantised = compile_walk(found.trace, MEAN, STD, pixels(40), settings, name=quotient)
    answers = quantised.program.real_numbers(interpret(quantised.program, quantised.weights, pixels(20)))
    with torch.no_grad():
        expected = np.concatenate([made(torch.from_numpy(one[None] / 255)).numpy() for one in pixels(20)])
    spread = (expected - expected.mean(axis=0)).std()
    error = float(np.sqrt(np.square(answers - expected).mean()) / spread)
    print(error, quantised.approximation_error)
    assert error < 0.1
    assert_two_processes_agree(quantised, "gmw", tmp_path)


@pytest.mark.parametrize("quotient", ["softmax of channels", "layer norm of channels", "a quotient", "a root"])
def test_they_are_refused_where_nothing_may_be_approximated(quotient: str) -> None:
    with pytest.raises(InputError, match="cannot be compiled exactly"):
        read_module(network(quotient).double(), Shape(*IMAGE)).trace(MEAN, STD, outline=True)


MIXED: dict[str, Callable[[Tensor], Tensor]] = {  # where the batch is the axis behind the first
    "softmax": lambda x: x.softmax(1),
    "mean": lambda x: x.mean(1, keepdim=True),
    "norm": lambda x: functional.layer_norm(x.permute(0, 2, 1), (1,)),
    "norm of all": lambda x: functional.layer_norm(x, x.shape),
    "mean of several": lambda x: x.mean((0, 1), keepdim=True),
    "matrices": lambda x: x.permute(0, 2, 1) @ x,
}


@pytest.mark.parametrize("mixed", MIXED)
def test_images_of_a_batch_that_lies_behind_are_kept_apart(mixed: str) -> None:
    behind = Call(lambda _, x: MIXED[mixed](x.flatten(2).permute(2, 0, 1)).flatten(1)[:1])
    with pytest.raises(InputError, match="is over an axis of one element") as refused:
        read_module(behind.double(), Shape(*IMAGE), approximate=True).trace(MEAN, STD, outline=True)
    assert "Images of a batch must be kept apart" in refused.value.remedy


@pytest.mark.parametrize(("axis", "opset", "refused"), [(0, 12, True), (0, 17, False), (-1, 12, False)])
def test_a_softmax_before_opset_13_takes_the_axes_behind_its_own(
    axis: int, opset: int, refused: bool, tmp_path: Path
) -> None:
    make = Maker()
    x = make.node("Reshape", "x", make.constant(np.array([-1, 16, 4])))
    x = make.node("Softmax", make.node("Transpose", x, perm=[1, 0, 2]), axis=axis)
    x = make.node("Flatten", make.node("Transpose", x, perm=[1, 0, 2]))
    path = write(make.model(make.dense(x, 64, 4), opset), tmp_path / "network.onnx")
    if refused:
        with pytest.raises(InputError, match="is over an axis of one element of 16x1x4"):
            read_network(path, approximate=True).trace(MEAN[:1], STD[:1], outline=True)
    else:
        read_network(path, approximate=True).trace(MEAN[:1], STD[:1], outline=True)
