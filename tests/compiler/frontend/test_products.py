"""Products of two feature maps: compared with torch, and asked by two processes."""

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
from sphynx.errors import InputError, SphynxError
from sphynx.program.backends import Backend
from sphynx.program.ir import Gate, Square
from sphynx.protocol.verify.plan import refuse_unchecked
from sphynx.space.tally import Shape
from tests.compiler.frontend.against_torch import MEAN, STD, assert_two_processes_agree, error_of, fuse_exactly, pixels
from tests.compiler.frontend.test_onnx_operators import exported
from tests.compiler.frontend.torch_modules import IMAGE, Body, Call

pytestmark = pytest.mark.filterwarnings("ignore::Warning:torch")  # its exporter warns of its own successor


def two(form: Callable[[Tensor, Tensor], Tensor], first: int = 4, second: int = 4) -> nn.Module:
    """Two convolutions of a map, and what is made of both."""
    return Call(
        lambda m, x: form(m.one(x), m.two(x)), one=nn.Conv2d(4, first, 1), two=nn.Conv2d(4, second, 3, padding=1)
    )


def attention(x: Tensor, y: Tensor) -> Tensor:
    """Linear attention, without a softmax: every pixel asks every other one."""
    keys = x.flatten(2) @ y.flatten(2).transpose(1, 2)
    return (keys @ x.flatten(2) / 30).reshape(x.shape)


def wide(x: Tensor, y: Tensor) -> Tensor:
    """Few elements of the second matrix: these are the gates."""
    return (x.flatten(2).transpose(1, 2) @ y.flatten(2)[:, :, :3]).mean(1)[:, :, None, None] + x[:, :3]


PRODUCTS: dict[str, tuple[Callable[[], nn.Module], int, int]] = {  # with how many gates and squares
    "equal maps": (lambda: two(torch.mul), 1, 0),
    "of each pixel": (lambda: two(torch.mul, 4, 1), 1, 0),
    "of each row": (lambda: two(lambda x, y: x * y.mean(3, keepdim=True)), 1, 0),
    "outer": (lambda: two(lambda x, y: x.mean((2, 3), keepdim=True) * y[:, :1]), 1, 0),
    "spread by hand": (lambda: two(lambda x, y: x * y[:, :1].expand_as(x)), 1, 0),
    "halves": (lambda: Call(lambda m, x: torch.mul(*m.both(x).chunk(2, 1)), both=nn.Conv2d(4, 8, 1)), 1, 0),
    "vectors": (lambda: two(lambda x, y: x.mean(3).flatten(1) * y.mean(3).flatten(1)), 1, 0),
    "a sum of parts": (lambda: two(lambda x, y: (x.unflatten(1, (2, 2)) * y.unflatten(1, (2, 2))).sum(1)), 1, 0),
    "a square": (lambda: two(lambda x, y: x * x + y**2), 0, 2),
    "matrices": (lambda: two(attention), 2, 0),
    "a narrow matrix": (lambda: two(wide), 1, 0),
    "joined rows": (
        lambda: two(lambda x, y: torch.cat([x.flatten(2), y.flatten(2)], 2) * torch.cat([y, x], 2).flatten(2)),
        1,
        0,
    ),
    "dense rows": (lambda: Call(lambda m, x: m.dense(x.flatten(2)), dense=nn.Linear(IMAGE[1] * IMAGE[2], 6)), 0, 0),
}


def network(product: str) -> nn.Module:
    torch.manual_seed(4)
    return Body(PRODUCTS[product][0]()).eval()


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("by", ["ONNX", "torch.export"])
def test_fused_they_equal_torch(product: str, by: str, tmp_path: Path) -> None:
    made = network(product)
    if by == "ONNX":
        found = read_network(exported(made, tmp_path / "network.onnx"))
    else:
        found = read_module(made.double(), Shape(*IMAGE))
    for fused in fuse_exactly(found, made, 1e-9):
        kinds = [type(step) for step in fused.graph.steps]
        assert (kinds.count(Gate), kinds.count(Square)) == PRODUCTS[product][1:]


def compiled(product: str, folder: Path) -> tuple[Quantised, nn.Module]:
    made = network(product)
    found = read_network(exported(made, folder / "network.onnx"))
    settings = CompileSettings(precision=Precision(12, 12, 11))
    return compile_walk(found.trace, MEAN, STD, pixels(40), settings, name=product), made


@pytest.mark.parametrize(
    ("product", "backend"),
    [("equal maps", "gc"), ("equal maps", "gmw"), ("of each pixel", "gc"), ("matrices", "gmw"), ("a square", "gmw")],
)
def test_two_processes_get_the_oracles_answers(product: str, backend: Backend, tmp_path: Path) -> None:
    quantised, made = compiled(product, tmp_path)
    assert error_of(quantised, made) < 0.02
    assert_two_processes_agree(quantised, backend, tmp_path)


def test_a_client_that_cheats_is_not_guarded_against(tmp_path: Path) -> None:
    program = compiled("equal maps", tmp_path)[0].program
    with pytest.raises(SphynxError, match="a product of two maps is not protected"):
        refuse_unchecked(program)


def test_other_powers_are_refused() -> None:
    with pytest.raises(InputError, match="has an exponent other than 2"):
        read_module(Body(two(lambda x, y: x**3 + y)).double(), Shape(*IMAGE)).trace(MEAN, STD, outline=True)
