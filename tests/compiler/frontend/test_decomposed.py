"""Programs that torch has taken apart (run_decompositions), as tools save them: they mean what the module means."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.export import export, save

from sphynx.compiler.frontend.export.lower import operator_name
from sphynx.compiler.frontend.export.module import load_module, read_module
from sphynx.errors import InputError
from sphynx.program.interpret import evaluate
from sphynx.program.ir import Graph
from sphynx.space.tally import Shape
from tests.compiler.frontend.torch_modules import CASES, Body, Call, with_statistics

pytestmark = pytest.mark.filterwarnings("ignore::Warning:torch")


class Plain(nn.Module):
    """An ordinary network: pools of all kinds, a residual sum, dense layers with a bias and without."""

    def __init__(self) -> None:
        super().__init__()
        self.front = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4), nn.ReLU())
        self.inner = nn.Sequential(nn.Conv2d(4, 4, 3, padding=1, groups=2), nn.BatchNorm2d(4))
        self.largest, self.mean, self.all = nn.MaxPool2d(3, 2, 1), nn.AvgPool2d(2), nn.AdaptiveAvgPool2d(1)
        self.clip = nn.ReLU6()
        self.end = nn.Sequential(nn.Linear(4, 5, bias=False), nn.ReLU(), nn.Dropout(), nn.Linear(5, 3))

    def forward(self, x: Tensor) -> Tensor:
        x = self.largest(self.front(x))
        x = self.mean(self.clip(x + self.inner(x)))
        logits: Tensor = self.end(self.all(x).flatten(1))
        return logits


@pytest.mark.parametrize("table", [{}, None], ids=["functional", "core"])
@pytest.mark.parametrize("image", [(3, 16, 12), (3, 9, 15)], ids=str)
def test_files(image: tuple[int, int, int], table: dict[object, object] | None, tmp_path: Path) -> None:
    torch.manual_seed(1)
    network, path = with_statistics(Plain()).double().eval(), tmp_path / "network.pt2"
    apart = export(network, (torch.zeros(1, *image, dtype=torch.float64),)).run_decompositions(table)
    if table is None:
        words = {operator_name(node) for node in apart.graph.nodes if node.op == "call_function"}
        assert {"convolution", "addmm", "mm", "max_pool2d_with_indices", "mean"} <= words
    save(apart, path)
    module, found = load_module(path)
    assert found == image
    assert _equal_graphs(network, module, image)


@pytest.mark.parametrize(
    "case",
    [
        "transposed groups",
        "strides 3 and 2",
        "halves",
        "columns, then rows",
        "hard tanh",
        "signal",
        "signal, transposed",
    ],
)
def test_operators(case: str) -> None:
    torch.manual_seed(1)
    image = (3, 8, 6)
    network = with_statistics(Body(CASES[case])).double().eval()
    apart = export(network, (torch.zeros(1, *image, dtype=torch.float64),)).run_decompositions()
    assert _equal_graphs(network, apart.module(), image)


def _equal_graphs(network: nn.Module, apart: nn.Module, image: tuple[int, int, int]) -> bool:
    """Return whether both become the same steps but for names; assert that they compute what torch does."""
    pixels = np.random.default_rng(0).integers(0, 256, (1, *image))
    with torch.no_grad():
        expected = network(torch.from_numpy(pixels / 255)).numpy()
    graphs: list[Graph] = []
    for module in (network, apart):
        fused = read_module(module, Shape(*image)).trace((0.0,) * 3, (1.0,) * 3)
        got = evaluate(fused.graph, fused.weights, pixels.astype(np.float64), lambda *_: None)
        assert np.abs(got - expected).max() < 1e-9 * (1 + np.abs(expected).max())
        graphs.append(fused.graph)
    first, second = ([(type(step), graph.shapes[step.name]) for step in graph.steps] for graph in graphs)
    return first == second


def test_factors_of_a_product_and_its_bias() -> None:
    torch.manual_seed(1)
    bias, weights = torch.randn(5).double(), torch.randn(144, 5).double()
    network = Call(lambda _, x: torch.addmm(bias, x.flatten(1), weights, beta=0.5, alpha=-2))
    pixels = np.random.default_rng(0).integers(0, 256, (1, 3, 8, 6))
    network.register_buffer("kind", torch.zeros((), dtype=torch.float64))
    fused = read_module(network, Shape(3, 8, 6)).trace((0.0,) * 3, (1.0,) * 3)
    got = evaluate(fused.graph, fused.weights, pixels.astype(np.float64), lambda *_: None)
    assert np.abs(got - network(torch.from_numpy(pixels / 255)).numpy()).max() < 1e-9


def test_convolutions_of_other_axes_are_refused() -> None:
    network = Call(lambda m, x: m.conv(x[:, None]).flatten(1), conv=nn.Conv3d(1, 2, 3)).eval()
    apart = export(network, (torch.zeros(1, 3, 8, 6),)).run_decompositions().module()
    for module in (network, apart):
        with pytest.raises(InputError, match="Conv over three axes cannot be compiled"):
            read_module(module, Shape(3, 8, 6))


@pytest.mark.parametrize("pool", [nn.AdaptiveAvgPool2d(2), nn.AdaptiveMaxPool2d(2)], ids=["average", "max"])
def test_pools_of_maps_without_a_batch_are_refused(pool: nn.Module) -> None:
    """torch takes [n, channels, length] for one image of n channels."""
    network = Call(lambda m, x: m.pool(x.flatten(2)).flatten(1), pool=pool).eval()
    with pytest.raises(InputError, match=r"without a batch cannot be compiled .*: give it a map of \[n, channels"):
        read_module(network, Shape(3, 8, 6))
