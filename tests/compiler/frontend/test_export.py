"""Torch modules through torch.export: fused they equal torch in double precision; as files, and what is refused."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim, export, save
from torch.nn import functional

from sphynx.compiler.frontend.export.module import load_module, read_module
from sphynx.compiler.frontend.onnx.file import read_network
from sphynx.errors import InputError
from sphynx.program.interpret import evaluate
from sphynx.program.ir import Graph
from sphynx.space.tally import Shape
from tests.compiler.frontend.against_torch import fuse_with_cuts
from tests.compiler.frontend.test_onnx_operators import exported
from tests.compiler.frontend.torch_modules import (
    CASES,
    IMAGE,
    Body,
    Call,
    DenseBlock,
    PreActivated,
    of_each,
    with_statistics,
)
from tests.compiler.frontend.torchvision_networks import small_network

pytestmark = pytest.mark.filterwarnings("ignore::Warning:torch")


def assert_equal(network: nn.Module, image: tuple[int, ...] = IMAGE) -> Graph:
    network = with_statistics(network).double().eval()
    found = read_module(network, Shape(*image))
    pixels = np.random.default_rng(0).integers(0, 256, (2, *image))
    with torch.no_grad():
        expected = np.concatenate([network(torch.from_numpy(each[None] / 255)).numpy() for each in pixels])
    return fuse_with_cuts(found, pixels, expected)


# What torch has and ONNX files do not show in this way.
MORE: dict[str, nn.Module] = {
    "same padding": nn.Conv2d(4, 4, (2, 3), padding="same"),
    "circular": nn.Conv2d(4, 4, 3, padding=1, padding_mode="circular"),
    "circular signal": nn.Sequential(nn.Flatten(2), nn.Conv1d(4, 4, 3, padding="same", padding_mode="circular")),
    "stretched signal": nn.Sequential(
        nn.Flatten(2), nn.Conv1d(4, 3, 2), nn.PReLU(3), nn.Upsample(scale_factor=2), nn.AdaptiveAvgPool1d(7)
    ),
    "stacked": Call(lambda _, x: torch.stack([x, 2 * x], 2).flatten(1, 2)),
    "flipped and rolled": Call(lambda _, x: x.flip(3).roll(1, 2)),
    "channel shuffle": nn.ChannelShuffle(2),
    "chosen channels": Call(lambda _, x: x[:, [2, 0, 1, 3]]),
    "one channel": Call(lambda _, x: x[:, 1]),
    "sum of channels": Call(lambda _, x: sum(x.unbind(1))),
    "in place": Call(lambda _, x: x.clone().add_(1).mul_(2).relu_()),
    "alpha": Call(lambda m, x: torch.sub(torch.add(x, m.conv(x), alpha=2), 3, alpha=0.5), conv=nn.Conv2d(4, 4, 1)),
    "nearest exact": nn.Upsample(scale_factor=2, mode="nearest-exact"),
    "nearest to a size": nn.Upsample(size=(5, 9)),
    "adaptive max": nn.AdaptiveMaxPool2d((2, 3)),
    "adaptive to more": nn.AdaptiveAvgPool2d((11, 7)),
    "divisor": nn.AvgPool2d(2, divisor_override=3),
    "divisor, rounded up": nn.AvgPool2d((3, 2), (4, 3), (1, 0), ceil_mode=True, divisor_override=5),
    "sums": Call(lambda _, x: x.sum((2, 3)) + x.amax((2, 3))),
    "constant product": Call(lambda _, x: x.flatten(1) @ torch.ones(192, 5, dtype=x.dtype)),
    "no affine": nn.BatchNorm2d(4, affine=False),
    "assigned rows": Call(lambda _, x: x.slice_scatter(3 * x[:, :, :2], -2, 1, 3)),
    "like": Call(lambda _, x: x + torch.ones_like(x) * 3),
}


@of_each([*CASES, *MORE])
def test_operators(case: str) -> None:
    torch.manual_seed(1)
    assert_equal(Body({**CASES, **MORE}[case]))


@pytest.mark.parametrize("middle", [DenseBlock(4, 2, 4), PreActivated(4, 4)], ids=["dense", "pre-activated"])
def test_what_several_layers_read_can_be_made_once(middle: nn.Module) -> None:
    """Fused, each layer convolves again what all before it read; cut, every layer's map is convolved once."""
    torch.manual_seed(1)
    network = Body(middle)
    fused = assert_equal(network)
    found = read_module(network.eval(), Shape(*IMAGE))
    mean, std = (0.0,) * 3, (1.0,) * 3
    cut = found.trace(mean, std, cuts=found.trace(mean, std, outline=True).joints, outline=True).graph

    def convolutions(graph: Graph) -> int:
        return sum(term.kernel_height == 3 for step in graph.linears for term in step.terms)

    assert convolutions(cut) == sum(isinstance(layer, nn.Conv2d) for layer in network.modules())
    assert convolutions(cut) < convolutions(fused) / 2
    norms = [term for step in cut.linears for term in step.terms if term.kernel_height == 1]
    assert all(term.groups == cut.shapes[term.source].channels for term in norms)  # of joined channels, one by one


def test_both_readers_give_one_graph(tmp_path: Path) -> None:
    """But for the names of steps."""
    torch.manual_seed(1)
    middle = nn.Sequential(
        nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU6(), nn.MaxPool2d(2), CASES["halves"]
    )
    network = with_statistics(Body(middle)).double().eval()
    mean, std = (0.0,) * 3, (1.0,) * 3
    by_torch = read_module(network, Shape(*IMAGE)).trace(mean, std)
    by_onnx = read_network(exported(network, tmp_path / "network.onnx")).trace(mean, std)
    assert [type(step) for step in by_torch.graph.steps] == [type(step) for step in by_onnx.graph.steps]
    assert list(by_torch.graph.shapes.values()) == list(by_onnx.graph.shapes.values())
    assert len(by_torch.joints) == len(by_onnx.joints)


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v2", "squeezenet1_1", "shufflenet_v2_x0_5", "googlenet"])
def test_unmodified_torchvision_networks(name: str) -> None:
    """At 32x32, in float: double precision would need the whole network twice."""
    network, image = small_network(name)
    found = read_module(network, Shape(*image))
    fused = found.trace((0.0,) * 3, (1.0,) * 3, cuts=found.trace((0.0,) * 3, (1.0,) * 3, outline=True).joints)
    pixels = np.random.default_rng(0).integers(0, 256, (1, *image))
    with torch.no_grad():
        expected = network(torch.from_numpy(pixels / 255).float()).numpy()
    got = evaluate(fused.graph, fused.weights, pixels.astype(np.float64), lambda *_: None)
    assert np.abs(got - expected).max() < 1e-4 * (1 + np.abs(expected).max())


def test_the_module_stays_as_it_was() -> None:
    network = Body(nn.Dropout()).train()
    network.front.eval()
    read_module(network, Shape(*IMAGE))
    assert network.training and network.middle.training and not network.front.training


@pytest.mark.parametrize("open_batch", [False, True])
def test_files(open_batch: bool, tmp_path: Path) -> None:
    network = Body(nn.MaxPool2d(2)).eval()
    example = torch.zeros(4 if open_batch else 1, *IMAGE)
    shapes = {"x": {0: Dim("n")}} if open_batch else None
    save(export(network, (example,), dynamic_shapes=shapes), tmp_path / "network.pt2")
    module, image = load_module(tmp_path / "network.pt2")
    assert image == IMAGE
    found = read_module(module, image, where="network.pt2")
    fused = found.trace((0.0,) * 3, (1.0,) * 3)
    pixels = np.random.default_rng(0).integers(0, 256, (1, *IMAGE))
    with torch.no_grad():
        expected = network(torch.from_numpy(pixels / 255).float()).numpy()
    got = evaluate(fused.graph, fused.weights, pixels.astype(np.float64), lambda *_: None)
    assert np.abs(got - expected).max() < 1e-5


class TwoInputs(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return x + y


class Branch(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(1) if x.sum() > 0 else -x.flatten(1)


class Condition(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = torch.cond(x.sum() > 0, lambda y: y.flatten(1) * 2, lambda y: y.flatten(1) * 3, (x,))
        return y


def attention(module: nn.Module, x: Tensor) -> Tensor:
    rows = x.flatten(2).transpose(1, 2)
    return module.heads(rows, rows, rows)[0]  # type: ignore[operator]  # modules hold anything


REFUSED: dict[str, tuple[nn.Module, str, str]] = {
    "two inputs": (TwoInputs(), r"TwoInputs: it has 2 inputs \(x, y\)", "from one image"),
    "branch": (Branch(), "Branch: its control flow depends on computed values", "must not depend on the input"),
    "condition": (Condition(), "Condition: If cannot be compiled", "must not depend on the input"),
    "recurrent": (
        Body(Call(lambda m, x: m.cell(x.flatten(2))[0], cell=nn.LSTM(48, 5, batch_first=True))),
        r"Body: LSTM cannot be compiled \(middle.cell, node lstm\)",
        "use convolutions",
    ),
    "attention": (
        Body(Call(attention, heads=nn.MultiheadAttention(4, 2, batch_first=True))),
        "Body: Softmax cannot be compiled",
        "sphynx compile --operators",
    ),
    "several": (
        Body(nn.Sequential(nn.SELU(), nn.SELU(), nn.GroupNorm(2, 4))),
        r"2 errors:\n.*Selu cannot be compiled \(2 times, first in middle.0, node selu\): train"
        r".*\n.*GroupNormalization cannot be compiled exactly \(middle.2, node group_norm\): .*use batch norm",
        "sphynx compile --operators",
    ),
    "smooth": (
        Body(nn.SiLU()),
        r"Body: Swish cannot be compiled exactly \(middle, node silu\)",
        "sphynx compile --operators",
    ),
    "power": (Body(Call(lambda _, x: x**3)), "Pow has an exponent other than 2", "Squares can be compiled"),
    "rounded": (
        Body(Call(lambda _, x: x.int() / 2)),
        "Cast to whole numbers cannot be compiled",
        "sphynx compile --operators",
    ),
    "softmax of groups": (
        Call(lambda _, x: x.reshape(-1, 2, 72).softmax(2).flatten(1)),
        "its softmax is along axis 2 of 1x2x72, not over the classes",
        "`heads`",
    ),
    "batches mixed": (Call(lambda _, x: x.reshape(-1)), "Rearrange makes 144 out of 1x3x8x6", "leave axis 0"),
    "unfit": (nn.Linear(7, 3), "Linear: torch.export fails on it for an image of 3x8x6", "runs on such an image"),
    "learning": (
        Call(lambda _, x: functional.batch_norm(x, None, None, training=True).flatten(1)),
        "BatchNormalization has no fixed statistics",
        "eval",
    ),
}


@pytest.mark.parametrize("module, message, remedy", REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_compiled_is_refused(module: nn.Module, message: str, remedy: str) -> None:
    with pytest.raises(InputError, match=message) as refused:
        read_module(module, Shape(*IMAGE)).trace((0.0,) * 3, (1.0,) * 3, outline=True)
    assert remedy in refused.value.remedy


def test_a_refusal_is_all_that_is_said(capfd: pytest.CaptureFixture[str]) -> None:
    """torch prints the graph and a warning of its own where an export fails."""
    with pytest.raises(InputError, match="its control flow depends on computed values"):
        read_module(Branch(), Shape(*IMAGE))
    assert capfd.readouterr() == ("", "")


def test_files_that_cannot_be_taken(tmp_path: Path) -> None:
    path = tmp_path / "network.pt2"
    with pytest.raises(InputError, match=r"network.pt2: there is no such file"):
        load_module(path)
    path.write_bytes(b"not an archive")
    with pytest.raises(InputError, match=r"network.pt2: it is not a valid .pt2 file"):
        load_module(path)
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    save(export(network, (torch.zeros(2, *IMAGE),)), path)
    with pytest.raises(InputError, match=r"network.pt2: its input is 2x3x8x6"):
        load_module(path)
    height = Dim("height", min=4, max=64)
    save(export(network, (torch.zeros(1, *IMAGE),), dynamic_shapes={"input": {2: height}}), path)
    with pytest.raises(InputError, match=r"network.pt2: its input is") as refused:
        load_module(path)
    assert "fixed channels, height and width" in refused.value.remedy
    save(export(TwoInputs(), (torch.zeros(1, *IMAGE),) * 2), path)
    with pytest.raises(InputError, match=r"network.pt2: it has 2 inputs, not one"):
        load_module(path)
