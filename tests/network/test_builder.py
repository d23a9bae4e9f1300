"""The networks compute what their description says: linearity between ReLUs, fused stacks, drop-path, odd sizes."""

from typing import cast

import pytest
import torch
from hypothesis import given, settings
from torch import nn

from sphynx.network.builder import SphynxNetwork
from sphynx.network.cell import Cell
from sphynx.network.operations import FactorizedReduction, build_operation
from sphynx.space.choices import Stem
from sphynx.space.design import Design
from sphynx.space.published_cells import SPHYNX
from sphynx.space.tally import Shape
from tests.space.strategies import designs


@settings(max_examples=10)
@given(designs())
def test_any_design_trains_and_infers(design: Design) -> None:
    torch.manual_seed(0)
    network = SphynxNetwork(design, auxiliary=True, drop_path=True)
    network.drop_path.fill_(0.3)
    x = torch.randn(3, *design.image)
    logits, auxiliary = network.forward_with_auxiliary(x)
    assert auxiliary is not None
    assert logits.shape == auxiliary.shape == (3, design.classes)
    (logits.sum() + auxiliary.sum()).backward()
    network.eval()
    assert network.forward_with_auxiliary(x)[1] is None


def test_imagenets_auxiliary_head_has_one_batch_norm_less() -> None:
    """As DARTS has it, and so the paper's code."""
    norms = {}
    stems: tuple[tuple[Stem, int], ...] = (("small", 32), ("imagenet", 128))
    for stem, size in stems:
        design = Design(SPHYNX, 4, 5, (1, 3), image=Shape(3, size, size), classes=10, stem=stem)
        head = SphynxNetwork(design, auxiliary=True).auxiliary
        assert head is not None
        norms[stem] = sum(isinstance(module, nn.BatchNorm2d) for module in head.modules())
    assert norms == {"small": 2, "imagenet": 1}


@settings(max_examples=10)
@given(designs())
def test_a_cell_is_affine_up_to_its_one_relu(design: Design) -> None:
    """f(a) + f(b) - f(0) == f(a + b) before the ReLU: what makes Sphynx cells cheap under private inference."""
    if design.inner_relus:
        return
    torch.manual_seed(0)
    cell = Cell(design, 0, 3, 3).double().eval()
    cell.activation = nn.Identity()  # type: ignore[assignment]
    larger = 2 if design.older_input_is_larger(0) else 1
    older = torch.randn(2, 1, 3, 8 * larger, 6 * larger, dtype=torch.double)
    newer = torch.randn(2, 1, 3, 8, 6, dtype=torch.double)
    zero = cell(torch.zeros_like(older[0]), torch.zeros_like(newer[0]))
    summed = cell(older[0], newer[0]) + cell(older[1], newer[1]) - zero
    assert torch.allclose(cell(older.sum(0), newer.sum(0)), summed, atol=1e-9)


@pytest.mark.parametrize("operation", ["conv3", "conv5"])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("size", [7, 8])
def test_pad_once_is_exactly_one_wider_convolution(operation: str, stride: int, size: int) -> None:
    torch.manual_seed(0)
    stack = build_operation(operation, 2, stride=stride, conv_stack="pad_once").double().eval()
    assert isinstance(stack, nn.Sequential)
    for layer in stack:
        if isinstance(layer, nn.BatchNorm2d):
            layer.running_mean, layer.bias.data = torch.randn(2).double(), torch.randn(2).double()
    kernel = int(operation[-1])
    width = kernel + stride * (kernel - 1)
    # The kernel is the response to impulses well inside a large image; the bias is the response to nothing.
    bias = stack(torch.zeros(1, 2, size, size, dtype=torch.double))[:, :, :1, :1]
    weight = torch.zeros(2, 2, width, width, dtype=torch.double)
    far = 8 * width
    for channel in range(2):
        for dy in range(stride):
            for dx in range(stride):
                impulse = torch.zeros(1, 2, far, far, dtype=torch.double)
                impulse[0, channel, far // 2 + dy, far // 2 + dx] = 1
                response = (stack(impulse) - bias)[0]
                for oy in range(response.shape[1]):
                    for ox in range(response.shape[2]):
                        ky, kx = (
                            far // 2 + dy - oy * stride + width // 2,
                            far // 2 + dx - ox * stride + width // 2,
                        )
                        if 0 <= ky < width and 0 <= kx < width:
                            weight[:, channel, ky, kx] = response[:, oy, ox]
    x = torch.randn(1, 2, size, size, dtype=torch.double)
    fused = nn.functional.conv2d(x, weight, bias.flatten(), stride=stride, padding=width // 2)
    assert torch.allclose(stack(x), fused, atol=1e-9)


def test_average_pool_does_not_count_padding() -> None:
    pool = build_operation("avg_pool", 1, stride=1, conv_stack="single").eval()
    assert torch.allclose(pool(torch.ones(1, 1, 4, 4)), torch.ones(1, 1, 4, 4), atol=1e-4)


@pytest.mark.parametrize("channels", [1, 4, 5])
@pytest.mark.parametrize("size", [1, 7, 8])
def test_factorized_reduction_takes_any_width_and_size(channels: int, size: int) -> None:
    reduction = FactorizedReduction(3, channels, affine=False).eval()
    x = torch.randn(2, 3, size, size)
    y = reduction(x)
    assert y.shape == (2, channels, (size + 1) // 2, (size + 1) // 2)
    # The even half reads pixels 0, 2, 4, ...; the odd half reads 1, 3, 5, ... and zero beyond the edge.
    scale = (1 + reduction.norm.eps) ** -0.5
    if channels > 1:
        assert reduction.even is not None
        assert torch.allclose(y[:, : channels // 2], reduction.even(x) * scale, atol=1e-5)
    if size > 1:
        odd = nn.functional.conv2d(x[:, :, 1:2, 1:2], reduction.odd.weight) * scale
        assert torch.allclose(y[:, channels // 2 :, :1, :1], odd, atol=1e-5)


def test_drop_path_drops_whole_samples_and_keeps_the_mean() -> None:
    design = Design(SPHYNX, 2, 3, (0, 1), image=Shape(3, 8, 8))
    network = SphynxNetwork(design, drop_path=True)
    network.drop_path.fill_(0.25)
    torch.manual_seed(0)
    keep = network._keep(torch.empty(4000, 1))
    assert keep.shape == (3, 8, 4000, 1, 1, 1)
    assert keep.unique().tolist() == pytest.approx([0, 4 / 3])
    assert keep.mean().item() == pytest.approx(1, abs=0.02)


def test_drop_path_scales_half_precision_maps_by_the_exact_rate() -> None:
    """1/0.9 is 1.1111; the nearest bf16 number is 1.1094."""
    network = SphynxNetwork(Design(SPHYNX, 2, 3, (0, 1), image=Shape(3, 8, 8)), drop_path=True)
    network.drop_path.fill_(0.1)
    keep = network._keep(torch.empty(400, 1, dtype=torch.bfloat16))
    assert keep.unique().tolist() == pytest.approx([0, 1 / 0.9], rel=1e-6)
    with torch.autocast("cpu", torch.bfloat16):
        older, newer = network.stem(torch.randn(400, 3, 8, 8))
        cell = cast(Cell, network.cells[0])
        x = cell.input_newer(newer)
        edge = cell._edge(0, [cell.input_older(older), x], keep[0])
    assert x.dtype == edge.dtype == torch.bfloat16


def test_drop_path_is_off_at_zero_and_in_evaluation() -> None:
    design = Design(SPHYNX, 2, 3, (0, 1), image=Shape(3, 8, 8))
    plain, dropping = SphynxNetwork(design), SphynxNetwork(design, drop_path=True)
    dropping.load_state_dict(plain.state_dict())
    x = torch.randn(4, 3, 8, 8)
    torch.testing.assert_close(dropping(x), plain(x))
    dropping.drop_path.fill_(0.9)
    torch.testing.assert_close(dropping.eval()(x), plain.eval()(x))


def test_batch_norm_is_affine_on_edges_and_stem_only() -> None:
    network = SphynxNetwork(Design(SPHYNX, 2, 3, (0, 1)))
    for name, module in network.named_modules():
        if isinstance(module, nn.BatchNorm2d):
            assert module.affine == (".edges." in name or name.startswith("stem")), name
