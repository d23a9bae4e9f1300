"""The objective term by term against torch's losses."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from sphynx.network.builder import SphynxNetwork
from sphynx.train.objective import Objective, distillation_loss
from tests.train.small import DESIGN, recipe

GENERATOR = torch.Generator().manual_seed(0)
STUDENT, TEACHER = (3 * torch.randn(7, 3, generator=GENERATOR) for _ in range(2))
Y = torch.arange(7) % 3


class Fixed(nn.Module):
    def __init__(self, logits: torch.Tensor) -> None:
        super().__init__()
        self.logits = nn.Parameter(logits)

    def forward(self, _: torch.Tensor) -> torch.Tensor:
        return self.logits


def test_squared_distillation_sums_over_classes_as_the_formula_does() -> None:
    settings = recipe(distillation="squared", distillation_weight=2.0)
    loss, _ = Objective(Fixed(STUDENT), settings, Fixed(TEACHER))(torch.zeros(7), Y)
    norms = torch.stack([torch.linalg.vector_norm(s - t) ** 2 for s, t in zip(STUDENT, TEACHER, strict=True)])
    torch.testing.assert_close(loss, functional.cross_entropy(STUDENT, Y) + 2 * norms.mean())


def test_squared_distillation_can_average_over_classes() -> None:
    settings = recipe(distillation="squared", distillation_reduction="mean")
    torch.testing.assert_close(distillation_loss(STUDENT, TEACHER, settings), functional.mse_loss(STUDENT, TEACHER))


def test_kl_distillation_is_hintons() -> None:
    settings = recipe(distillation="kl", distillation_temperature=3.0)
    p, q = (torch.softmax(logits / 3, dim=1) for logits in (TEACHER, STUDENT))
    expected = 9 * (p * (p / q).log()).sum(1).mean()
    torch.testing.assert_close(distillation_loss(STUDENT, TEACHER, settings), expected)
    same = distillation_loss(TEACHER, TEACHER, settings)
    assert abs(float(same)) < 1e-6


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_auxiliary_head_adds_its_share(smoothing: float) -> None:
    network = SphynxNetwork(DESIGN, auxiliary=True)
    x = torch.randn(7, 1, 4, 4)
    logits, auxiliary = network.forward_with_auxiliary(x)
    assert auxiliary is not None
    loss, given = Objective(network, recipe(label_smoothing=smoothing))(x, Y)
    expected = [functional.cross_entropy(s, Y, label_smoothing=smoothing) for s in (logits, auxiliary)]
    torch.testing.assert_close(loss, expected[0] + 0.4 * expected[1])
    torch.testing.assert_close(given, logits)


def test_the_teacher_is_frozen_and_no_part_of_the_student() -> None:
    teacher = Fixed(TEACHER)
    objective = Objective(Fixed(STUDENT), recipe(distillation="squared"), teacher)
    assert [name for name, _ in objective.named_parameters()] == ["network.logits"]
    objective(torch.zeros(7), Y)[0].backward()
    assert teacher.logits.grad is None and not teacher.training
