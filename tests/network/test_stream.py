"""Stream networks: what the formulas say, written out once more; their training; halo borders."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from sphynx.network.regions import compile_regions
from sphynx.network.stream import StreamNetwork
from sphynx.space.choices import Borders
from sphynx.space.stream import Stage, StreamDesign
from sphynx.space.tally import Shape

SMALL = (Stage(6, (3,)), Stage(8, (2, 4)), Stage(10, (5,)))


def network(borders: Borders, stages: tuple[Stage, ...] = SMALL, image: Shape = Shape(2, 16, 12)) -> StreamNetwork:
    torch.manual_seed(0)
    made = StreamNetwork(StreamDesign(stages, image, 3, borders=borders)).double()
    made.train()
    for _ in range(3):  # statistics that are not those of a fresh network
        made(torch.randn(5, *image, dtype=torch.float64))
    return made.eval()


def norm(layer: torch.nn.Module, x: Tensor) -> Tensor:
    assert isinstance(layer, torch.nn.BatchNorm2d)
    return functional.batch_norm(x, layer.running_mean, layer.running_var, layer.weight, layer.bias, eps=layer.eps)


def parts(layer: torch.nn.Module | Tensor) -> list[torch.nn.Module]:
    assert isinstance(layer, torch.nn.Sequential | torch.nn.ModuleList)
    return list(layer)


def weight(layer: torch.nn.Module) -> Tensor:
    assert isinstance(layer, torch.nn.Conv2d)
    return layer.weight


def by_definition(made: StreamNetwork, x: Tensor) -> Tensor:
    """Halo borders as they are defined: the whole stream, and each block's output extended by zeros."""
    halos, maps = made.design.halos, made.design.maps
    s = norm(made.stem[1], functional.conv2d(functional.pad(x, (16,) * 4), weight(made.stem[0]), stride=2))
    for number, stage in enumerate(made.stages):
        if number:
            convolution, after = parts(made.reductions[number - 1])
            s = norm(after, functional.conv2d(s, weight(convolution), stride=2))
        e, (height, width) = halos[number], maps[number][1:]
        assert s.shape[2:] == (height + 2 * e, width + 2 * e)
        for block in parts(stage):
            to_relus, to_stream = parts(block.to_relus), parts(block.to_stream)
            z = functional.conv2d(s[:, :, e - 1 : e + height + 1, e - 1 : e + width + 1], weight(to_relus[0]))
            r = functional.relu(norm(to_relus[1], z))
            u = norm(to_stream[1], functional.conv2d(r, weight(to_stream[0]), padding=2))
            s = s + functional.pad(u, (e - 1,) * 4)
    e, (height, width) = halos[-1], maps[-1][1:]
    logits: Tensor = made.head(s[:, :, e : e + height, e : e + width].mean((2, 3)))
    return logits


def test_halo_borders_are_as_defined() -> None:
    made = network("halo")
    assert made.design.halos == (7, 3, 1)
    x = torch.randn(2, 2, 16, 12, dtype=torch.float64)
    torch.testing.assert_close(made(x), by_definition(made, x))


def test_a_translation_within_the_halo_leaves_the_stream_of_a_linear_stem_as_it_is() -> None:
    """Nothing is cut off: the mean over the whole halo of a shifted object is that of the object."""
    made = network("halo", (Stage(4, (2,)),), Shape(1, 16, 16))
    x = torch.zeros(1, 1, 16, 16, dtype=torch.float64)
    x[:, :, 6:8, 6:8] = 1
    stem = made.stem[0]
    torch.testing.assert_close(stem(x).sum((2, 3)), stem(x.roll(2, 3)).sum((2, 3)))


@pytest.mark.parametrize("borders", ["zero", "halo"])
def test_odd_sizes_and_stages_without_blocks(borders: Borders) -> None:
    image = Shape(3, 11, 9)
    made = network(borders, (Stage(4, (3,)), Stage(5, ()), Stage(6, (2,))), image)
    assert [place[1:] for place in made.design.maps] == [(6, 5), (3, 3), (2, 2)]
    assert made(torch.randn(2, *image, dtype=torch.float64)).shape == (2, 3)


@pytest.mark.parametrize("borders", ["zero", "halo"])
def test_it_learns(borders: Borders) -> None:
    torch.manual_seed(0)
    made = StreamNetwork(StreamDesign((Stage(8, (4,)), Stage(8, (8,))), Shape(1, 8, 8), 2, borders=borders))
    x = torch.randn(64, 1, 8, 8)
    y = (x[:, 0, :, :4].mean((1, 2)) > x[:, 0, :, 4:].mean((1, 2))).long()
    optimizer = torch.optim.SGD(made.parameters(), 0.1, momentum=0.9)
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = functional.cross_entropy(made(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.1 * losses[0]


@pytest.mark.parametrize("borders", [pytest.param("zero", marks=pytest.mark.slow), "halo"])
def test_blocks_can_be_traced_whole_for_a_compiled_step(borders: Borders) -> None:
    torch.manual_seed(0)
    design = StreamDesign(SMALL, Shape(2, 16, 12), 3, borders=borders)
    plain, compiled = StreamNetwork(design).double(), StreamNetwork(design).double()
    compiled.load_state_dict(plain.state_dict())
    compile_regions(compiled, "aot_eager")
    x = torch.randn(4, 2, 16, 12, dtype=torch.float64)
    for made in (plain, compiled):
        made(x).square().sum().backward()
    for ours, theirs in zip(plain.parameters(), compiled.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad)
    for (name, kept), other in zip(plain.named_buffers(), compiled.buffers(), strict=True):
        torch.testing.assert_close(kept, other, msg=name)
