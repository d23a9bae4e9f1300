"""Squeeze and excitation: blocks of RegNetY, MobileNetV3 and EfficientNet, compiled and asked by two processes."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from sphynx.compiler.compile import compile_walk
from sphynx.compiler.frontend.export.module import read_module
from sphynx.compiler.frontend.onnx.file import read_network
from sphynx.compiler.precision import Precision
from sphynx.compiler.quantise import Quantised
from sphynx.compiler.settings import CompileSettings
from sphynx.program.backends import Backend
from sphynx.program.ir import Curve, Gate, Relu, Truncate
from sphynx.space.tally import Shape
from tests.compiler.frontend.against_torch import MEAN, STD, assert_two_processes_agree, error_of, fuse_exactly, pixels
from tests.compiler.frontend.test_onnx_operators import exported
from tests.compiler.frontend.torch_modules import IMAGE, Body, Call

pytestmark = pytest.mark.filterwarnings("ignore::Warning:torch")  # its exporter warns of its own successor


class Excited(nn.Module):
    """As torchvision has it."""

    def __init__(self, channels: int, squeezed: int, inner: nn.Module, gate: nn.Module) -> None:
        super().__init__()
        self.pool, self.inner, self.gate = nn.AdaptiveAvgPool2d(1), inner, gate
        self.down, self.up = nn.Conv2d(channels, squeezed, 1), nn.Conv2d(squeezed, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.gate(self.up(self.inner(self.down(self.pool(x))))) * x


def normed(inputs: int, outputs: int, kernel: int, groups: int = 1, stride: int = 1) -> list[nn.Module]:
    conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
    return [conv, nn.BatchNorm2d(outputs)]


def inverted(act: Callable[[], nn.Module], inner: Callable[[], nn.Module], gate: Callable[[], nn.Module]) -> nn.Module:
    """Expand, depthwise, excite, project; with its shortcut."""
    middle = nn.Sequential(
        *normed(4, 8, 1), act(), *normed(8, 8, 3, groups=8), act(), Excited(8, 2, inner(), gate()), *normed(8, 4, 1)
    )
    return Call(lambda m, x: m.middle(x) + x, middle=middle)


def regnet_y() -> nn.Module:
    middle = nn.Sequential(
        *normed(4, 8, 1),
        nn.ReLU(),
        *normed(8, 8, 3, groups=2, stride=2),
        nn.ReLU(),
        Excited(8, 2, nn.ReLU(), nn.Sigmoid()),
        *normed(8, 8, 1),
    )
    short = nn.Sequential(*normed(4, 8, 1, stride=2))
    return Call(lambda m, x: torch.relu(m.middle(x) + m.short(x)), middle=middle, short=short)


def channels_convolved() -> nn.Module:
    """Efficient channel attention, as timm has it, but for its gate."""
    return Call(
        lambda m, x: x * m.gate(m.conv(x.mean((2, 3)).view(len(x), 1, -1))).view(len(x), -1, 1, 1).expand_as(x),
        conv=nn.Conv1d(1, 1, 3, padding=1, bias=False),
        gate=nn.Hardsigmoid(),
    )


BLOCKS: dict[str, Callable[[], nn.Module]] = {
    "RegNetY": regnet_y,
    "ECA": channels_convolved,
    "MobileNetV3": lambda: inverted(nn.Hardswish, nn.ReLU, nn.Hardsigmoid),
    "EfficientNet": lambda: inverted(nn.SiLU, nn.SiLU, nn.Sigmoid),
}
SMOOTH = ("RegNetY", "EfficientNet")  # in the others all is exact


def network(block: str) -> nn.Module:
    torch.manual_seed(2)
    made = Body(BLOCKS[block]())
    for module in made.modules():
        if isinstance(module, nn.BatchNorm2d):
            assert module.running_var is not None
            nn.init.uniform_(module.running_var, 0.02, 0.2)
    return made.eval()


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("by", ["ONNX", "torch.export"])
def test_fused_they_equal_torch(block: str, by: str, tmp_path: Path) -> None:
    made = network(block)
    if by == "ONNX":
        found = read_network(exported(made, tmp_path / "network.onnx"), approximate=block in SMOOTH)
    else:
        found = read_module(made.double(), Shape(*IMAGE), approximate=block in SMOOTH)
    for fused in fuse_exactly(found, made, 1e-6):
        assert sum(isinstance(step, Gate) for step in fused.graph.steps) == 1
    assert any(isinstance(step, Curve) for step in fused.graph.steps) == (block in SMOOTH)


def compiled(block: str, folder: Path) -> tuple[Quantised, nn.Module]:
    made = network(block)
    found = read_network(exported(made, folder / "network.onnx"), approximate=block in SMOOTH)
    settings = CompileSettings(precision=Precision(12, 12, 11), knees=12)
    return compile_walk(found.trace, MEAN, STD, pixels(40), settings, name=block), made


@pytest.mark.parametrize(
    ("block", "backend"), [("RegNetY", "gc"), ("ECA", "gmw"), ("MobileNetV3", "gmw"), ("EfficientNet", "gmw")]
)
def test_two_processes_get_the_oracles_logits(block: str, backend: Backend, tmp_path: Path) -> None:
    quantised, made = compiled(block, tmp_path)
    assert (
        error_of(quantised, made) < 1.5 * quantised.approximation_error + 0.02 and quantised.approximation_error < 0.1
    )
    assert_two_processes_agree(quantised, backend, tmp_path)


def test_a_product_and_its_factors_have_as_many_bits_as_an_activation(tmp_path: Path) -> None:
    """Then no linear map is widened by it."""
    program = compiled("MobileNetV3", tmp_path)[0].program
    steps = {step.name: step for step in program.steps}
    (gate,) = (step for step in program.steps if isinstance(step, Gate))
    assert isinstance(steps[gate.source], Truncate)
    truncated = [step for step in program.steps if isinstance(step, Truncate) and step.name.startswith(gate.name)]
    assert len(truncated) == 1 and not program.links
    relus = sum(program.shapes[step.name].size for step in program.steps if isinstance(step, Relu))
    assert program.relu_count == relus
