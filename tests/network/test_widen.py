"""A widened network computes and learns exactly what the narrow one does."""

from dataclasses import replace

import torch
from hypothesis import given, settings
from torch.nn import functional

from sphynx.network.builder import SphynxNetwork
from sphynx.network.widen import narrowed, widened
from sphynx.space.design import Design
from sphynx.space.tally import Shape
from tests.space.strategies import designs


def train(network: SphynxNetwork, steps: int) -> None:
    torch.manual_seed(1)
    optimizer = torch.optim.SGD(network.parameters(), 0.01, momentum=0.9, nesterov=True, weight_decay=1e-3)
    for _ in range(steps):
        x = torch.randn(4, *network.design.image, dtype=torch.double)
        y = torch.randint(0, network.design.classes, (4,))
        logits, auxiliary = network.forward_with_auxiliary(x)
        assert auxiliary is not None
        optimizer.zero_grad()
        (functional.cross_entropy(logits, y) + functional.cross_entropy(auxiliary, y)).backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 5.0)
        optimizer.step()


@settings(max_examples=6)
@given(designs())
def test_training_wide_is_training_narrow(design: Design) -> None:
    # Maps of several pixels: batch norm over a handful of nearly equal values would amplify rounding without bound.
    design = replace(design, image=Shape(3, 24, 24), stem="small", reduce_positions=design.reduce_positions[:2])
    torch.manual_seed(0)
    narrow = SphynxNetwork(design, auxiliary=True, drop_path=True).double()
    narrow.drop_path.fill_(0.2)
    wide = widened(narrow, 8)
    widths = [layer.num_features for name, layer in wide.named_modules() if name.endswith("input_newer.1")]
    assert len(widths) == design.depth and not any(width % 8 for width in widths)
    train(narrow, 2)
    train(wide, 2)
    for (name, ours), theirs in zip(narrowed(wide).state_dict().items(), narrow.state_dict().values(), strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-6, atol=1e-8), name
    x = torch.randn(2, *design.image, dtype=torch.double)
    assert torch.allclose(wide.eval()(x), narrow.eval()(x), rtol=1e-6, atol=1e-8)


@settings(max_examples=5)
@given(designs())
def test_there_and_back(design: Design) -> None:
    network = SphynxNetwork(design)
    for name, tensor in narrowed(widened(network, 8)).state_dict().items():
        assert torch.equal(tensor, network.state_dict()[name]), name
