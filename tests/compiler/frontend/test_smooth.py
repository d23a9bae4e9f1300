"""Smooth activations: read as the functions that torch has, refused without leave, as far off as is reported."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import nn

from sphynx.compiler.compile import compile_walk
from sphynx.compiler.frontend.export.module import read_module
from sphynx.compiler.frontend.onnx.file import read_network
from sphynx.compiler.fusion.fit import fit
from sphynx.compiler.precision import Precision
from sphynx.compiler.quantise import Quantised
from sphynx.compiler.settings import CompileSettings
from sphynx.errors import InputError
from sphynx.program.curves import CURVES
from sphynx.program.interpret import evaluate, interpret
from sphynx.program.ir import Curve, Relu, Truncate
from sphynx.space.tally import Shape
from tests.compiler.frontend.onnx_models import Maker, write
from tests.compiler.frontend.test_onnx_operators import exported
from tests.compiler.frontend.torch_modules import IMAGE, Body, Call

pytestmark = pytest.mark.filterwarnings("ignore::Warning:torch")  # its exporter warns of its own successor
MEAN, STD = (0.0,) * 3, (1.0,) * 3


SMOOTH: dict[str, tuple[nn.Module, str]] = {
    "sigmoid": (nn.Sigmoid(), "sigmoid"),
    "tanh": (nn.Tanh(), "tanh"),
    "silu": (nn.SiLU(), "silu"),
    "gelu": (nn.GELU(), "gelu"),
    "gelu by tanh": (nn.GELU("tanh"), "gelu_tanh"),
    "mish": (nn.Mish(), "mish"),
    "softplus": (nn.Softplus(), "softplus"),
    "elu": (nn.ELU(), "elu"),
    "silu of a dense layer": (nn.Sequential(nn.Flatten(), nn.Linear(192, 5), nn.SiLU()), "silu"),
    "silu of a sum": (nn.Sequential(Call(lambda _, x: x + 1), nn.SiLU()), "silu"),
}


def pixels(count: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (count, *IMAGE), np.uint8)


@pytest.mark.parametrize("case", SMOOTH)
def test_they_are_read_as_the_functions_that_torch_has(case: str, tmp_path: Path) -> None:
    module, function = SMOOTH[case]
    torch.manual_seed(1)
    network = Body(nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), module))
    found = read_network(exported(network, tmp_path / "network.onnx"), approximate=True)
    fused = found.trace(MEAN, STD)
    assert [step.function for step in fused.graph.steps if isinstance(step, Curve)] == [function]
    assert fused.graph == found.trace(MEAN, STD, outline=True).graph
    with torch.no_grad():
        expected = network(torch.from_numpy(pixels(3) / 255)).numpy()
    got = evaluate(fused.graph, fused.weights, pixels(3).astype(np.float64), lambda *_: None)
    assert np.abs(got - expected).max() < 1e-6  # the exporter's constants are in single precision


def compiled(module: nn.Module, tmp_path: Path, knees: int = 8) -> tuple[Quantised, nn.Module]:
    torch.manual_seed(1)
    network = Body(nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4, affine=False), module))
    found = read_network(exported(network, tmp_path / "network.onnx"), approximate=True)
    settings = CompileSettings(precision=Precision(12, 12, 11), knees=knees)
    return compile_walk(found.trace, MEAN, STD, pixels(40), settings, name="network"), network


@pytest.mark.parametrize("case", ["sigmoid", "tanh", "silu", "gelu", "mish"])
def test_as_integers_they_are_within_the_reported_error(case: str, tmp_path: Path) -> None:
    made, network = compiled(SMOOTH[case][0], tmp_path)
    (found,) = made.approximations
    program, seen = made.program, {}
    logits = interpret(program, made.weights, pixels(40), lambda step, tensor: seen.update({step.name: tensor}))
    scales = {step.name: step.scale for step in program.affines}
    steps = {step.name: step for step in program.steps}
    knees, summed = steps[f"{found.layer}.knees"], steps[f"{found.layer}.sum"]
    relu, floor = steps[f"{found.layer}.relus"], steps[found.layer]
    assert isinstance(relu, Relu) and isinstance(floor, Truncate)
    entering = np.ldexp(seen[knees.sources[0]].astype(float), -scales[knees.sources[0]])
    leaving = np.ldexp(seen[floor.name].astype(float), floor.truncate - scales[summed.name])
    steepest = 1.2
    units = 2.0 ** (floor.truncate - scales[summed.name]) + steepest * 2.0 ** (relu.truncate - scales[knees.name])
    wrong = np.abs(leaving - CURVES[found.function](entering))
    assert wrong.max() <= found.largest_error + units
    assert np.sqrt(np.square(wrong).mean()) <= 1.3 * found.rms_error + units
    assert program.relu_count == (1 + found.knees) * 4 * 8 * 6
    with torch.no_grad():
        expected = network(torch.from_numpy(pixels(40) / 255)).numpy()
    error = np.sqrt(np.square(program.real_numbers(logits) - expected).mean())
    assert error / expected.std() < 1.2 * made.approximation_error + 0.02


def test_more_knees_are_nearer(tmp_path: Path) -> None:
    errors = [compiled(nn.SiLU(), tmp_path, knees)[0].approximations[0].rms_error for knees in (3, 6, 12)]
    assert errors[0] > 2 * errors[1] > 4 * errors[2]


def test_knees_beyond_reason_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="`knees`"):
        compiled(nn.SiLU(), tmp_path, 0)


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_activations_that_are_not_numbers_are_refused(number: float) -> None:
    convolution = nn.Conv2d(4, 4, 3, padding=1)
    assert convolution.bias is not None
    nn.init.constant_(convolution.bias, number)
    network = Body(nn.Sequential(convolution, nn.SiLU()))
    found = read_module(network, Shape(*IMAGE), approximate=True)
    with pytest.raises(InputError, match="its activations are not finite numbers"):
        compile_walk(found.trace, MEAN, STD, pixels(2))


@settings(max_examples=15)
@example(function="inverse_root", centre=0.09765625, spread=5.5, knees=3, seed=1)  # steepest within a part of the grid
@given(
    function=st.sampled_from(sorted(CURVES)),
    centre=st.floats(-5, 5),
    spread=st.floats(0.01, 8),
    knees=st.integers(1, 12),
    seed=st.integers(0, 100),
)
def test_a_fit_is_as_far_off_as_it_says(function: str, centre: float, spread: float, knees: int, seed: int) -> None:
    sample = np.random.default_rng(seed).normal(centre, spread, 2000)
    found = fit(CURVES[function], sample, knees)
    x = np.linspace(found.low, found.high, 3001)
    exactly = CURVES[function](x)
    rounding = 1e-9 * (1 + np.abs(exactly).max())
    assert np.abs(found(x) - exactly).max() <= 1.05 * found.largest_error + rounding
    assert len(found.knees) <= knees
    straight = np.abs(exactly - CURVES[function](np.array(centre))).max()
    assert found.rms_error <= straight + rounding  # never worse than a constant
    slopes = np.ldexp(np.cumsum(found.changes), 14)
    assert np.allclose(slopes, np.rint(slopes), atol=1e-6) or np.abs(found.changes).max() < 0.2


def test_without_leave_the_error_names_operator_count_and_flag(tmp_path: Path) -> None:
    make = Maker()
    x = make.conv("x", 1, 2)
    for _ in range(3):
        x = make.node("Mul", x, make.node("Sigmoid", x))
    x = make.node("Tanh", make.node("Flatten", x))
    path = write(make.model(make.dense(x, 72, 4)), tmp_path / "network.onnx")
    with pytest.raises(
        InputError, match=r"Swish cannot be compiled exactly \(3 times, first in node mul2\).*`approximate=True`"
    ) as e:
        read_network(path)
    assert "Tanh cannot be compiled exactly (node tanh" in str(e.value) and str(path) in str(e.value)
    read_network(path, approximate=True)


def test_a_gelu_that_a_torch_module_spells_out() -> None:
    by_tanh = Call(lambda _, x: 0.5 * x * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (x + 0.044715 * x**3))))
    network = Body(nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), by_tanh))
    fused = read_module(network, Shape(*IMAGE), approximate=True).trace(MEAN, STD)
    assert [step.function for step in fused.graph.steps if isinstance(step, Curve)] == ["gelu_tanh"]
    with pytest.raises(InputError, match=r"Gelu cannot be compiled exactly.*`approximate=True`"):
        read_module(network, Shape(*IMAGE))


@pytest.mark.parametrize(("bounds", "taken"), [((0.3, None), False), ((None, 0.7), False), ((0.0, None), True)])
def test_a_clip_with_one_bound_within_a_product_counts(
    bounds: tuple[float | None, float | None], taken: bool, tmp_path: Path
) -> None:
    make = Maker()
    x = make.conv("x", 1, 2)
    inputs = ("" if n is None else make.constant(np.array(n, np.float32)) for n in bounds)
    clipped = make.node("Clip", make.node("Sigmoid", x), *inputs)
    x = make.node("Flatten", make.node("Mul", x, clipped))
    path = write(make.model(make.dense(x, 72, 4)), tmp_path / "network.onnx")
    with pytest.raises(InputError, match="cannot be compiled exactly") as raised:
        read_network(path)
    assert ("Swish" in str(raised.value)) == taken
