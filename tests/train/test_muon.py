"""Muon against torch's own SVD and SGD; kernels keep their length; digits are learnt as well."""

from math import sqrt
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from sphynx.data.open import open_data
from sphynx.run.folder import RunFolder
from sphynx.run.progress import QUIET
from sphynx.space.stream import Stage, StreamDesign
from sphynx.space.tally import Shape
from sphynx.train.job import Job
from sphynx.train.loop import train
from sphynx.train.muon import Muon, orthogonalised
from sphynx.train.objective import Objective
from sphynx.train.recipe import load_recipe
from sphynx.train.step import Step, build_optimizer
from tests.train.small import recipe
from tests.train.test_step import CPU, batches, network

DIGITS = StreamDesign((Stage(12, (8,)), Stage(16, (12,))), Shape(1, 8, 8), 10)


@pytest.mark.parametrize("shape", [(24, 576), (64, 75), (64, 64), (72, 27)])
def test_an_orthogonalised_matrix_is_nearly_the_polar_factor(shape: tuple[int, int]) -> None:
    """U V^T of the singular value decomposition: the same singular vectors, all values about 1."""
    torch.manual_seed(0)
    matrices = torch.randn(3, *shape, dtype=torch.float64) * torch.rand(shape[1], dtype=torch.float64)
    made = orthogonalised(matrices)
    left, values, right = torch.linalg.svd(matrices, full_matrices=False)
    seen = left.mT @ made @ right.mT
    large = values > 0.02 * torch.linalg.matrix_norm(matrices)[:, None]  # the others need more steps
    assert large.double().mean() > 0.6
    on_diagonal = seen.diagonal(dim1=1, dim2=2)
    assert (on_diagonal[large] > 0.65).all() and (on_diagonal < 1.25).all()
    torch.testing.assert_close(seen, torch.diag_embed(on_diagonal))


def test_zero_gradients_change_no_direction() -> None:
    assert torch.equal(orthogonalised(torch.zeros(2, 3, 9)), torch.zeros(2, 3, 9))


def test_a_step_is_the_formula() -> None:
    """Two steps for kernels of two shapes together; vectors and a matrix as by torch's SGD."""
    torch.manual_seed(0)
    shapes = [(4, 3, 3, 3), (2, 4, 3, 3), (4, 3, 3, 3), (5, 4), (4,)]
    parameters = [nn.Parameter(torch.randn(shape, dtype=torch.float64)) for shape in shapes]
    settings = recipe(
        optimizer="muon", learning_rate=0.5, kernel_learning_rate=0.1, kernel_momentum=0.9, decay_on="kernels"
    )
    expected = [parameter.detach().clone() for parameter in parameters]
    rest = [nn.Parameter(expected[3]), nn.Parameter(expected[4])]
    groups: list[dict[str, Any]] = [{"params": rest[:1]}, {"params": rest[1:], "weight_decay": 0.0}]
    sgd = torch.optim.SGD(
        groups,
        0.5,
        settings.momentum,
        weight_decay=settings.weight_decay,
        nesterov=True,
    )
    optimizer, momenta = build_optimizer(parameters, settings, torch.tensor(0.5)), [torch.zeros(())] * 3
    for _ in range(2):
        for parameter in parameters:
            parameter.grad = torch.randn_like(parameter)
        for own, given in zip(rest, parameters[3:], strict=True):
            own.grad = given.grad
        optimizer.step()
        sgd.step()
        for number, parameter in enumerate(parameters[:3]):
            assert parameter.grad is not None
            momenta[number] = 0.9 * momenta[number] + parameter.grad
            update = orthogonalised((parameter.grad + 0.9 * momenta[number]).flatten(1)[None])
            before = expected[number] * sqrt(len(parameter)) / expected[number].norm()
            expected[number] = before - 0.1 * update.view_as(before)
    for parameter, value in zip(parameters, [*expected[:3], *rest], strict=True):
        torch.testing.assert_close(parameter, value, rtol=1e-6, atol=1e-6)


def test_kernels_keep_their_length() -> None:
    settings = recipe(optimizer="muon")
    trained = network()
    step = Step(Objective(trained, settings), settings, CPU)
    assert isinstance(step.optimizer, Muon)
    for x, y in batches():
        step(x, y)
    kernels = [p for p in trained.parameters() if p.ndim == 4 and p.grad is not None]
    assert len(kernels) > 5
    for kernel in kernels:
        assert abs(kernel.norm() / sqrt(len(kernel)) - 1) < 0.03  # of its last step, rate 0.02


def test_digits_are_learnt_no_worse_than_by_sgd(tmp_path: Path) -> None:
    """A quarter of the training images is held out. Muon's rate is the best of four, SGD's that of `small`. At 0.02,
    which suits longer trainings, kernels turn too little in 51 steps."""
    digits, means = open_data("digits"), {}
    for optimizer in ("sgd", "muon"):
        values = {"optimizer": optimizer, "epochs": 3, "decay_on": "kernels", "held_out": 0.25, "ema": 0.99}
        settings = load_recipe("small", {**values, "kernel_learning_rate": 0.1})
        found = []
        for seed in (0, 1):
            out = tmp_path / f"{optimizer}-{seed}"
            train(Job(DIGITS, digits, settings, out, seed, voice=QUIET))
            found.append(RunFolder(out).read_metrics()[-1]["held_out_accuracy"])
        means[optimizer] = sum(found) / 2
    assert means["muon"] > means["sgd"] - 0.01, means
