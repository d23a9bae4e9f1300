"""Schedules against torch's own."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sphynx.train.recipe import drop_probability, learning_rate, load_recipe


def torch_rates(scheduler: str, epochs: int, rate: float, **settings: object) -> list[float]:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], rate)
    schedule = getattr(torch.optim.lr_scheduler, scheduler)(optimizer, **settings)
    rates = []
    for _ in range(epochs):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return rates


def test_cosine_is_torchs() -> None:
    recipe = load_recipe("paper-cifar100", {"epochs": 40, "final_learning_rate": 0.001})
    expected = torch_rates("CosineAnnealingLR", 40, 0.025, T_max=40, eta_min=0.001)
    assert [learning_rate(recipe, epoch) for epoch in range(40)] == pytest.approx(expected)
    assert learning_rate(recipe, 3, batch=5, batches=10) == learning_rate(recipe, 3)


def test_step_is_torchs() -> None:
    recipe = load_recipe("paper-imagenet")
    expected = torch_rates("MultiStepLR", 120, 0.1, milestones=[30, 60, 90], gamma=0.1)
    assert [learning_rate(recipe, epoch) for epoch in range(120)] == pytest.approx(expected)


@given(epochs=st.integers(1, 30), warmup=st.floats(0, 1), batches=st.integers(1, 50), final=st.floats(0, 0.05))
def test_warm_up_rises_then_falls_within_its_bounds(epochs: int, warmup: float, batches: int, final: float) -> None:
    settings = {"epochs": epochs, "warmup_epochs": warmup * epochs, "final_learning_rate": final}
    recipe = load_recipe("fast", {**settings, "learning_rate": 0.1})
    rates = [learning_rate(recipe, e, b, batches) for e in range(epochs) for b in range(batches)]
    assert all(0 < rate <= 0.1 * (1 + 1e-9) for rate in rates)
    top = rates.index(max(rates))
    assert rates[: top + 1] == sorted(rates[: top + 1]) and rates[top:] == sorted(rates[top:], reverse=True)


def test_drop_path_rises_linearly() -> None:
    recipe = load_recipe("paper-cifar100")
    assert [drop_probability(recipe, epoch) for epoch in (0, 300, 600)] == pytest.approx([0, 0.1, 0.2])
