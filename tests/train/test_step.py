"""The training step against a plain loop in torch, in double precision; sums and the NaN flag; the optimizers."""

import copy

import pytest
import torch
from torch import nn

from sphynx.network.backend import fast_convolutions
from sphynx.network.builder import SphynxNetwork
from sphynx.train.objective import Objective
from sphynx.train.step import Step, build_optimizer
from tests.train.small import DESIGN, data, recipe

CPU = torch.device("cpu")


def network() -> SphynxNetwork:
    torch.manual_seed(1)
    return SphynxNetwork(DESIGN, auxiliary=True)


def batches(count: int = 4) -> list[tuple[torch.Tensor, torch.Tensor]]:
    images = data().train
    return [(images.images[i : i + 12].float() / 100, images.labels[i : i + 12]) for i in range(0, 12 * count, 12)]


@pytest.mark.parametrize("clip", [0.5, 0.0])
def test_a_step_is_a_plain_torch_step(clip: float) -> None:
    settings = recipe(grad_clip=clip, learning_rate=0.1)
    ours, theirs = network().double(), network().double()  # so fine that the weight decay of one step shows
    step = Step(Objective(ours, settings), settings, CPU)
    optimizer = torch.optim.SGD(theirs.parameters(), 0.1, 0.9, weight_decay=3e-4, nesterov=True)
    losses, hits = [], 0
    for number, (x, y) in enumerate(batches()):
        x, rate = x.double(), 0.1 / (number + 1)
        step.learning_rate.fill_(rate)
        step(x, y)
        optimizer.param_groups[0]["lr"] = float(torch.tensor(rate))
        optimizer.zero_grad()
        with fast_convolutions(CPU):
            loss, logits = Objective(theirs, settings)(x, y)
            loss.backward()
        if clip:
            nn.utils.clip_grad_norm_(theirs.parameters(), clip)
        optimizer.step()
        losses.append(loss.item())
        hits += int((logits.argmax(1) == y).sum())
    for (name, mine), their in zip(ours.state_dict().items(), theirs.state_dict().values(), strict=True):
        torch.testing.assert_close(mine, their, msg=name)
    mean_loss, accuracy, bad = step.read()
    assert mean_loss == pytest.approx(sum(losses) / 4) and accuracy == hits / 48 and bad is None


def test_the_first_step_without_a_finite_loss_is_named() -> None:
    settings = recipe()
    step = Step(Objective(network(), settings), settings, CPU)
    for number, (x, y) in enumerate(batches()):
        step(x * (float("nan") if number >= 2 else 1), y)
    assert step.read()[2] == 2
    step.start_epoch()
    assert step.read()[2] is None


def test_state_goes_on_where_it_was() -> None:
    settings = recipe()
    first, second = network(), network()
    one = Step(Objective(first, settings), settings, CPU)
    for x, y in batches():
        one(x, y)
    state = copy.deepcopy(one.state_dict())  # as a file would hold it
    two = Step(Objective(second, settings), settings, CPU)
    second.load_state_dict(first.state_dict())
    two.load_state_dict(state)
    for step in (one, two):
        step.learning_rate.fill_(0.01)
        for x, y in batches():
            step(x, y)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    assert one.read() == two.read()


@pytest.mark.parametrize(("precision", "rounds"), [("fp32", False), ("tf32", True)])
def test_convolutions_round_their_operands_by_the_precision_alone(precision: str, rounds: bool) -> None:
    """Forward and backward; what the process had before comes back."""
    seen: list[bool] = []
    trained = network()
    watched = trained.head
    watched.register_forward_hook(lambda *_: seen.append(torch.backends.cudnn.allow_tf32))
    watched.register_full_backward_hook(lambda *_: seen.append(torch.backends.cudnn.allow_tf32))
    settings = recipe(precision=precision)
    step = Step(Objective(trained, settings), settings, CPU)
    before = torch.backends.cudnn.allow_tf32
    try:
        torch.backends.cudnn.allow_tf32 = not rounds
        step(*batches(1)[0])
        assert seen == [rounds, rounds]
        assert torch.backends.cudnn.allow_tf32 is (not rounds)
    finally:
        torch.backends.cudnn.allow_tf32 = before


@pytest.mark.parametrize(
    "changes",
    [{"precision": "bf16"}, {"optimizer": "adamw"}, {"optimizer": "muon"}, {"memory_format": "channels_last"}],
)
def test_variants_learn(changes: dict[str, object]) -> None:
    settings = recipe(learning_rate=0.01, **changes)
    step = Step(Objective(network(), settings), settings, CPU)
    losses = []
    for _ in range(3):
        step.start_epoch()
        for x, y in batches():
            step(x, y)
        losses.append(step.read()[0])
    assert losses[-1] < losses[0]


def test_soft_labels_count_by_their_larger_class() -> None:
    settings = recipe()
    step = Step(Objective(network(), settings), settings, CPU)
    x, y = batches(1)[0]
    hard = nn.functional.one_hot(y, 3).float()
    step(x, 0.9 * hard + 0.1 * hard.roll(1, 0))
    assert 0 <= step.read()[1] <= 1


@pytest.mark.parametrize("optimizer", ["sgd", "adamw", "muon"])
def test_decay_on_kernels_leaves_vectors_alone(optimizer: str) -> None:
    """Without a gradient a step is decay alone."""
    settings = recipe(weight_decay=0.1, decay_on="kernels", optimizer=optimizer, learning_rate=0.5)
    parameters = [torch.nn.Parameter(torch.ones(shape)) for shape in ((2, 3), (4,))]
    rate = torch.tensor(settings.learning_rate)
    made = build_optimizer(parameters, settings, rate)
    for parameter in parameters:
        parameter.grad = torch.zeros_like(parameter)
    made.step()
    assert (parameters[0] < 1).all() and (parameters[1] == 1).all()
