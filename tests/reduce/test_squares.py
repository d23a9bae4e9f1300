"""Networks of squares learn as stably as networks of ReLUs: a trained one stays what it was, at any seed."""

from pathlib import Path

import pytest
import torch

import sphynx
from sphynx.network.square import Square
from sphynx.reduce.settings import Method
from sphynx.space.reference import ResNet18Design
from sphynx.space.tally import Shape

ORIGINAL = ResNet18Design(width=2, image=Shape(1, 8, 8), classes=10, stem="small", name="original")
BUDGET = 50  # of 1,088


def some_inputs() -> torch.Tensor:
    torch.manual_seed(0)
    return torch.randn(100, 3, 4, 4) * torch.tensor([1.0, 2.0, 0.5])[:, None, None] + torch.arange(3)[:, None, None]


def test_a_square_computes_the_parabola_that_it_follows() -> None:
    square, wanted = Square(3), torch.tensor([[0.2, 0.1, 0.3], [0.5, 0.4, 0.1], [0.1, 0.2, 0.3]])
    square.follow(wanted, some_inputs(), torch.tensor([True, True, False]))
    parabola = square.parabola()
    torch.testing.assert_close(parabola[:, :2], wanted[:, :2])
    torch.testing.assert_close(parabola[:, 2], Square(1).parabola()[:, 0])  # not touched: next to a ReLU
    a, b, c = parabola[:, :, None, None]
    for training in (False, True):
        square.train(training)
        x = some_inputs()
        made = square(x)
        torch.testing.assert_close(made[:, :2], ((a * x + b) * x + c)[:, :2], rtol=1e-3, atol=1e-3)


def test_what_a_square_makes_does_not_depend_on_the_scale_of_what_comes_in() -> None:
    square = Square(3).train()
    torch.testing.assert_close(square(100 * some_inputs()), square(some_inputs()), rtol=1e-3, atol=1e-3)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("original") / "run"
    assert sphynx.train_network(ORIGINAL, "digits", out=out).accuracy > 0.9
    return out


def test_squares_of_squares_do_not_run_away(original: Path, tmp_path: Path) -> None:
    """Before, a training at the recipe's rate left 10 % of ten classes, with each of three seeds."""
    settings = {"search_epochs": 4, "training.epochs": 4}
    result = sphynx.reduce_network(
        original, None, relu_budget=BUDGET, out=tmp_path / "run", method="safenet", settings=settings
    )
    assert result.best.counts.squares > 1000 and result.best.accuracy > 0.8


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("method", ["safenet", "delphi", "autorep"])
def test_any_seed_keeps_the_accuracy(original: Path, tmp_path: Path, method: Method, seed: int) -> None:
    result = sphynx.reduce_network(
        original,
        None,
        relu_budget=BUDGET,
        out=tmp_path / "run",
        method=method,
        seed=seed,
        settings={"search_epochs": 8},
    )
    assert result.best.accuracy > result.original_accuracy - 0.04
