"""ONNX operators by kind: exported from torch in double precision and fused, they equal torch; and they mean what ONNX
Runtime says."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from sphynx.compiler.compile import compile_walk
from sphynx.compiler.frontend.elsewhere import read_onnx
from sphynx.compiler.frontend.onnx.file import read_network
from sphynx.compiler.frontend.operators.network import OperatorNetwork
from sphynx.compiler.precision import Precision
from sphynx.compiler.settings import CompileSettings
from sphynx.program.interpret import evaluate, interpret
from sphynx.program.ir import Combine, Graph, Linear, Program, Relu, Truncate
from tests.compiler.frontend.against_torch import fuse_with_cuts
from tests.compiler.frontend.onnx_models import Maker, plain_cnn, write
from tests.compiler.frontend.torch_modules import CASES, IMAGE, Body, of_each, with_statistics

pytestmark = pytest.mark.filterwarnings("ignore::Warning:torch")  # its exporter warns of its own successor


def exported(network: nn.Module, path: Path, *, dtype: torch.dtype = torch.float64) -> Path:
    example = (torch.zeros(1, *IMAGE, dtype=dtype),)
    torch.onnx.export(network.to(dtype).eval(), example, path, dynamo=False, input_names=["x"])
    return path


def assert_equal(network: nn.Module, tmp_path: Path) -> Graph:
    found = read_network(exported(with_statistics(network), tmp_path / "network.onnx"))
    pixels = np.random.default_rng(0).integers(0, 256, (3, *IMAGE))
    with torch.no_grad():
        expected = network(torch.from_numpy(pixels / 255)).numpy()
    return fuse_with_cuts(found, pixels, expected)


@of_each(CASES)
@pytest.mark.parametrize("first", [False, True], ids=["behind a ReLU", "behind a convolution"])
def test_operators(case: str, first: bool, tmp_path: Path) -> None:
    torch.manual_seed(1)
    assert_equal(Body(CASES[case], first=first), tmp_path)


@of_each(CASES)
def test_operators_mean_what_onnx_runtime_says(case: str, tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    torch.manual_seed(1)
    path = exported(Body(CASES[case]), tmp_path / "network.onnx", dtype=torch.float32)
    pixels = np.random.default_rng(0).integers(0, 256, (1, *IMAGE))
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL  # operators as they are
    session = runtime.InferenceSession(path.read_bytes(), options, providers=["CPUExecutionProvider"])
    expected = session.run(None, {"x": (pixels / 255).astype(np.float32)})[0].reshape(1, -1)
    fused = read_network(path).trace((0.0,) * 3, (1.0,) * 3)
    got = evaluate(fused.graph, fused.weights, pixels.astype(np.float64), lambda *_: None)
    assert np.abs(got - expected).max() < 1e-4 * (1 + np.abs(expected).max())


def test_what_onnx_runtime_cannot_optimise_is_judged_by_it_all_the_same(tmp_path: Path) -> None:
    """It would have the pool pad by more than its kernel."""
    pytest.importorskip("onnxruntime")
    network = Body(CASES["average of zeros alone"])
    judge = read_onnx(exported(network, tmp_path / "network.onnx", dtype=torch.float32)).judge()
    assert judge is not None
    pixels = np.random.default_rng(0).integers(0, 256, (2, *IMAGE)).astype(np.uint8)
    with torch.no_grad():
        expected = network(torch.from_numpy(pixels / 255).float()).numpy()
    assert np.abs(judge.answer(pixels, (0.0,) * 3, (1.0,) * 3) - expected).max() < 1e-4


def test_what_onnx_runtime_cannot_run_is_judged_without_it(tmp_path: Path) -> None:
    """It loads a dilated convolution that auto_pad pads, and fails when it runs."""
    pytest.importorskip("onnxruntime")
    make = Maker()
    padded = make.conv("x", 1, 2, dilations=[2, 2], auto_pad="SAME_UPPER")
    model = make.model(make.dense(make.node("Flatten", padded), 128, 3))
    assert read_onnx(write(model, tmp_path / "network.onnx")).judge() is None
    assert read_onnx(write(plain_cnn(), tmp_path / "plain.onnx")).judge() is not None


@dataclass(frozen=True)
class Pool:
    size: tuple[int, int]  # of the image
    kernel: tuple[int, int]
    stride: tuple[int, int]
    pads: tuple[int, int]
    ceil_mode: bool

    @property
    def attributes(self) -> dict[str, Any]:
        return {
            "kernel_shape": self.kernel,
            "strides": self.stride,
            "pads": self.pads * 2,
            "ceil_mode": int(self.ceil_mode),
        }


@st.composite
def pools(draw: st.DrawFn) -> Pool:
    size, kernel, stride = (draw(st.tuples(span, span)) for span in map(st.integers, (3, 1, 1), (9, 4, 4)))
    rows, columns = (draw(st.integers(0, extent // 2)) for extent in kernel)
    assume(size[0] + 2 * rows >= kernel[0] and size[1] + 2 * columns >= kernel[1])
    return Pool(size, kernel, stride, (rows, columns), draw(st.booleans()))


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pool=pools())
def test_max_pools_of_any_geometry(pool: Pool, tmp_path: Path) -> None:
    make = Maker(("n", 3, *pool.size))
    pooled = make.node("MaxPool", "x", **pool.attributes)
    network = read_network(write(make.model(make.node("Flatten", pooled)), tmp_path / "network.onnx"))
    pixels = np.random.default_rng(0).integers(0, 256, (2, 3, *pool.size))
    expected = functional.max_pool2d(
        torch.from_numpy(pixels / 255), pool.kernel, pool.stride, pool.pads, ceil_mode=pool.ceil_mode
    )
    fused = network.trace((0.0,) * 3, (1.0,) * 3)
    got = evaluate(fused.graph, fused.weights, pixels.astype(np.float64), lambda *_: None)
    assert np.abs(got - expected.numpy().reshape(2, -1)).max() < 1e-9


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pool=pools(), counts_pads=st.booleans())
def test_average_pools_of_any_geometry(pool: Pool, counts_pads: bool, tmp_path: Path) -> None:
    """Torch divides by what a window sees of the image and its padding; ONNX Runtime does so too."""
    make = Maker(("n", 3, *pool.size))
    pooled = make.node("AveragePool", "x", count_include_pad=int(counts_pads), **pool.attributes)
    path = write(make.model(make.node("Flatten", pooled)), tmp_path / "network.onnx")
    pixels = np.random.default_rng(0).integers(0, 256, (2, 3, *pool.size))
    expected = functional.avg_pool2d(
        torch.from_numpy(pixels / 255), pool.kernel, pool.stride, pool.pads, pool.ceil_mode, counts_pads
    ).numpy()
    fused = read_network(path).trace((0.0,) * 3, (1.0,) * 3)
    got = evaluate(fused.graph, fused.weights, pixels.astype(np.float64), lambda *_: None)
    assert np.abs(got - expected.reshape(2, -1)).max() < 1e-9
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    options.log_severity_level = 3  # it warns where its own shape inference disagrees with the pool
    session = runtime.InferenceSession(path.read_bytes(), options, providers=["CPUExecutionProvider"])
    (theirs,) = session.run(None, {"x": (pixels / 255).astype(np.float32)})
    assert np.abs(theirs - expected.reshape(2, -1)).max() < 1e-5


def counts(middle: nn.Module, tmp_path: Path) -> tuple[int, int, int]:
    """ReLUs and comparisons behind the first convolution, and layers of either."""
    graph = assert_equal(Body(middle), tmp_path)
    return graph.relu_count, graph.comparison_count, sum(isinstance(step, Relu) for step in graph.steps)


def test_a_pool_goes_before_the_relu_where_that_is_cheaper(tmp_path: Path) -> None:
    n = 4 * 8 * 6
    assert counts(nn.MaxPool2d(2), tmp_path) == (n // 4, 3 * n // 4, 3)  # n in all, not 1.75 n
    for activation in (nn.ReLU6(), nn.LeakyReLU(0.1), nn.PReLU(4)):
        graph = assert_equal(Body(nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), activation, nn.MaxPool2d(2))), tmp_path)
        later = [step for step in graph.steps if isinstance(step, Relu)][1:]
        assert [step.comparison for step in later] == [True, True, False]
    relus, comparisons, layers = counts(nn.MaxPool2d(3, 2, 1), tmp_path)
    assert layers == 5 and relus + comparisons <= n + 6 * n // 4


def test_a_pool_of_a_convolution_is_truncated_behind_it(tmp_path: Path) -> None:
    """No activation does that for it: as it is, its bits would add to those of the next map."""
    middle = nn.Sequential(nn.Conv2d(4, 4, 3), nn.MaxPool2d(2), nn.Conv2d(4, 4, 2))
    graph = assert_equal(Body(middle), tmp_path)
    (floor,) = (step for step in graph.steps if isinstance(step, Truncate))
    assert not graph.links and floor.name in {name for step in graph.linears for name in step.sources}
    program, error = compiled(middle, tmp_path)
    assert error < 0.01 and program.ring_bits < 36


def test_groups_are_public(tmp_path: Path) -> None:
    """Depthwise convolution and batch norm before a ReLU have groups; a convolution behind them mixes all channels."""
    middle = nn.Sequential(
        nn.Conv2d(4, 8, 3, groups=4), nn.ReLU(), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3, groups=2)
    )
    graph = assert_equal(Body(middle), tmp_path)
    assert [term.groups for step in graph.linears for term in step.terms] == [1, 4, 8, 1]


def compiled(middle: nn.Module, tmp_path: Path) -> tuple[Program, float]:
    torch.manual_seed(1)
    network = Body(middle)
    found = read_network(exported(network, tmp_path / "network.onnx"))
    pixels = np.random.default_rng(0).integers(0, 256, (30, *IMAGE), np.uint8)
    settings = CompileSettings(precision=Precision(12, 12, 11))
    made = compile_walk(found.trace, (0.0,) * 3, (1.0,) * 3, pixels, settings, name="network")
    logits = interpret(made.program, made.weights, pixels[:20])  # holds every range
    with torch.no_grad():
        expected = network(torch.from_numpy(pixels[:20] / 255)).numpy()
    error = np.abs(made.program.real_numbers(logits) - expected).max()
    return made.program, float(error / np.abs(expected).max())


@pytest.mark.parametrize(
    "case",
    [
        "max 2x2",
        "max 3x3/2 padded",
        "relu6",
        "hard tanh",
        "leaky",
        "prelu",
        "residual",
        "bilinear",
        "halves",
        "bilinear by a fraction",
        "hard sigmoid of a map",
        "hard swish",
        "hard swish by a clip",
        "columns alone",
        "mean of channels",
        "sums of rows",
        "padded average rounded up",
    ],
)
def test_as_integers_they_stay_close(case: str, tmp_path: Path) -> None:
    _, error = compiled(CASES[case], tmp_path)
    assert error < 0.01


class Fading(nn.Module):
    """A branch whose norm has faded, beside the map that it is added to."""

    def __init__(self, factor: float, shift: float) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4)
        nn.init.constant_(self.norm.weight, factor)
        nn.init.constant_(self.norm.bias, shift)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x - 0.4 + torch.relu(self.norm(self.conv(x))))


@pytest.mark.parametrize("shift", [0, 1e-12, 0.3])
@pytest.mark.parametrize("factor", [0, 1e-9, 1e-38])
def test_weights_that_faded_neither_lose_the_bias_nor_widen_the_ring(
    factor: float, shift: float, tmp_path: Path
) -> None:
    program, error = compiled(Fading(factor, shift), tmp_path)
    assert error < 0.01 and program.ring_bits < 40


def test_a_map_without_weights_is_its_bias(tmp_path: Path) -> None:
    class Constant(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(x * 0.3 - 0.2 + torch.relu(0 * x + torch.tensor([0.4, 0.3, -0.2, 0.1]).view(4, 1, 1)))

    _, error = compiled(nn.Sequential(nn.Conv2d(4, 4, 1), Constant()), tmp_path)
    assert error < 0.01


def test_a_clip_is_exact_at_its_bounds(tmp_path: Path) -> None:
    """The program clips to a whole number of units: rounding and clipping commute."""
    program, _ = compiled(nn.Sequential(nn.Conv2d(4, 4, 3), nn.Hardtanh(-0.5, 0.25)), tmp_path)
    (both,) = (step for step in program.steps if isinstance(step, Combine) and step.name.endswith(".both"))
    (relu,) = (step for step in program.steps if isinstance(step, Relu) and step.source == both.name)
    low, high = both.constants[0], both.constants[-1]
    assert (low - high) == round(0.75 * 2**both.scale) and (low - high) % 2**relu.truncate == 0


def test_a_leaky_relus_straight_part_is_truncated_like_it(tmp_path: Path) -> None:
    program, _ = compiled(nn.Sequential(nn.Conv2d(4, 4, 3), nn.LeakyReLU(0.1)), tmp_path)
    (floor,) = (step for step in program.steps if isinstance(step, Truncate))
    (relu,) = (step for step in program.steps if isinstance(step, Relu) and step.source == floor.source)
    assert floor.truncate == relu.truncate > 0 and program.ring_bits > program.ranges[floor.source]
    assert not program.links


@pytest.mark.parametrize(
    ("kind", "final"), [("Softmax", "softmax"), ("LogSoftmax", "log_softmax"), ("Sigmoid", "sigmoid")]
)
def test_what_follows_the_logits_is_the_clients(kind: str, final: str, tmp_path: Path) -> None:
    make = Maker()
    logits = make.dense(make.node("Flatten", "x"), 64, 3)
    network = read_network(write(make.model(make.node(kind, logits)), tmp_path / "network.onnx"))
    assert network.graph.ends[0].final == final
    plain = read_network(write(make.model(logits), tmp_path / "network.onnx"))
    ended, without = (read.trace((0.0,), (1.0,)).graph for read in (network, plain))
    assert ended.steps == without.steps and ended.outputs[0].final == final and not without.outputs[0].final


@pytest.mark.parametrize(
    ("opset", "attributes", "dims", "axis"),
    [(11, {}, (6,), 0), (11, {"axis": 2}, (2, 3), 1), (17, {"axis": 1}, (2, 3), 0), (17, {}, (2, 3), 1)],
)
def test_a_softmax_at_the_end_is_along_an_axis_of_the_output(
    opset: int, attributes: dict[str, int], dims: tuple[int, ...], axis: int, tmp_path: Path
) -> None:
    """A softmax's axis and all that follow were one up to opset 12; here two rows of three."""
    make = Maker()
    rows = make.node("Reshape", make.dense(make.node("Flatten", "x"), 64, 6), make.constant([1, 2, 3]))
    model = make.model(make.node("Softmax", rows, **attributes), opset)
    path = write(model, tmp_path / "network.onnx")
    graph = read_network(path).trace((0.0,), (1.0,)).graph
    (output,) = graph.outputs
    assert (output.dims, output.axis, output.final) == (dims, axis, "softmax")
    judge = read_onnx(path).judge()
    if judge is None:
        return
    pixels = np.random.default_rng(0).integers(0, 256, (2, 1, 8, 8)).astype(np.uint8)
    wanted = judge.answer(pixels, (0.0,), (1.0,)).reshape(2, *dims)
    fused = read_network(path).trace((0.0,), (1.0,))
    found = evaluate(fused.graph, fused.weights, pixels / 255 * 255, lambda *_: None).reshape(2, *dims)
    assert np.abs(output.finished(found) - wanted).max() < 1e-4


def test_shape_arithmetic_is_folded(tmp_path: Path) -> None:
    """As exporters write x.view(x.size(0), -1) for an open batch."""
    make = Maker()
    x = make.node("Relu", make.conv("x", 1, 2))
    batch = make.node("Gather", make.node("Shape", x), make.constant(np.array(0)), axis=0)
    rest = make.constant([-1])
    target = make.node("Concat", make.node("Unsqueeze", batch, make.constant([0])), rest, axis=0)
    output = make.dense(make.node("Reshape", x, target), 72, 4)
    network: OperatorNetwork = read_network(write(make.model(output), tmp_path / "network.onnx"))
    graph = network.trace((0.0,), (1.0,)).graph
    assert [type(step) for step in graph.steps] == [Linear, Relu, Linear]
    onnx.checker.check_model(make.model(output))
