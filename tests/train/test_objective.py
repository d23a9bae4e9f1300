"""The objective term by term against torch's losses."""

from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional

from sphynx.network.build import build_network
from sphynx.network.builder import SphynxNetwork
from sphynx.train.loop import make_batches, prepare_training
from sphynx.train.objective import Objective, distillation_loss
from tests.train.small import DESIGN, job, recipe

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


def test_standardised_distillation_is_kl_of_z_scores_and_ignores_scale_and_shift() -> None:
    settings = recipe(distillation="standardised", distillation_temperature=2.0)
    scores = [(x - x.mean(1, keepdim=True)) / x.std(1, keepdim=True, correction=0) for x in (STUDENT, TEACHER)]
    expected = distillation_loss(scores[0], scores[1], recipe(distillation="kl", distillation_temperature=2.0))
    torch.testing.assert_close(distillation_loss(STUDENT, TEACHER, settings), expected)
    torch.testing.assert_close(distillation_loss(5 * STUDENT + 3, TEACHER / 7 - 1, settings), expected)


def test_standardised_distillation_of_equal_logits_has_a_finite_gradient() -> None:
    student = torch.zeros(2, 3, requires_grad=True)
    distillation_loss(student, TEACHER[:2], recipe(distillation="standardised")).backward()
    assert student.grad is not None
    assert student.grad.isfinite().all()


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


def test_without_labels_only_the_teachers_term_is_left() -> None:
    settings = recipe(distillation="kl", label_weight=0.0, distillation_weight=2.0)
    loss, _ = Objective(Fixed(STUDENT), settings, Fixed(TEACHER))(torch.zeros(7), Y)
    torch.testing.assert_close(loss, 2 * distillation_loss(STUDENT, TEACHER, settings))
    assert not settings.auxiliary_head and settings.undistilled().auxiliary_head


def test_labels_can_weigh_less() -> None:
    settings = recipe(distillation="squared", label_weight=0.25)
    loss, _ = Objective(Fixed(STUDENT), settings, Fixed(TEACHER))(torch.zeros(7), Y)
    expected = 0.25 * functional.cross_entropy(STUDENT, Y) + distillation_loss(STUDENT, TEACHER, settings)
    torch.testing.assert_close(loss, expected)


def test_the_teacher_reads_the_augmented_and_mixed_batch_of_the_student(tmp_path: Path) -> None:
    """Seen at the first layer of each, in a step of a job that crops, cuts out and mixes."""
    settings = {"distillation": "kl", "mixup": 0.4, "crop": True, "cutout": 2, "label_smoothing": 0.1}
    work = job(tmp_path, teacher=build_network(DESIGN), **settings)
    network, step = prepare_training(work)
    read: list[torch.Tensor] = []
    assert work.teacher is not None
    for reader in (network, work.teacher):
        reader.register_forward_pre_hook(lambda _, inputs: read.append(inputs[0]))
        assert isinstance(reader.stem, torch.nn.Module)
        reader.stem.register_forward_pre_hook(lambda _, inputs: read.append(inputs[0]))
    x, y = next(iter(make_batches(work.data.train, work)))
    assert y.shape == (12, 3) and bool(((y > 0) & (y < 1)).any())  # it is mixed
    step(x, y)
    assert len(read) == 3 and all(seen is x for seen in read)  # the student is not called, but its stem is

    network.eval()
    with torch.no_grad():
        loss, logits = Objective(network, work.recipe, work.teacher)(x, y)
        expected = -(0.9 * y + 0.1 / 3).mul(logits.log_softmax(1)).sum(1).mean()
        torch.testing.assert_close(loss, expected + distillation_loss(logits, work.teacher(x), work.recipe))
