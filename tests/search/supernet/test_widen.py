"""A supernet in padded widths computes and learns what the narrow one does."""

from __future__ import annotations

import dataclasses
from itertools import islice

import pytest
import torch

from sphynx.search.recipe import SearchRecipe
from sphynx.search.search import Searcher, prepare_search
from tests.search.test_runs import RECIPE, small_data

STEPS = 4


def stepped(strategy: str, recipe: SearchRecipe) -> tuple[Searcher, list[float]]:
    searcher, halves, _ = prepare_search(small_data(), strategy, recipe, seed=0, device="cpu")
    searcher.start_epoch(0)
    return searcher, [float(searcher.step(*pair)) for pair in islice(halves.pairs(0), STEPS)]


@pytest.mark.parametrize(
    ("strategy", "conv_stack", "supernet"),
    [
        ("darts", "paper", "text"),
        ("darts", "single", "text"),
        ("gdas", "paper", "text"),
        ("gdas", "single", "text"),
        ("darts-unrolled", "paper", "released"),
    ],
)
def test_padded_channels_change_nothing(strategy: str, conv_stack: str, supernet: str) -> None:
    values = {**RECIPE.to_json(), "channels": 3, "conv_stack": conv_stack, "architecture_learning_rate": 0.01}
    values["supernet"] = supernet
    recipe = SearchRecipe(**values)
    narrow, losses = stepped(strategy, recipe)
    wide, wide_losses = stepped(strategy, dataclasses.replace(recipe, tensor_cores=True))
    assert wide_losses == pytest.approx(losses, rel=1e-4)
    for kind, strengths in narrow.strategy.strengths().items():
        assert torch.allclose(wide.strategy.strengths()[kind], strengths, atol=1e-4)
    sizes = [sum(p.numel() for p in searcher.shared.parameters) for searcher in (narrow, wide)]
    moved = [sum(float(p.detach().square().sum()) for p in searcher.shared.parameters) for searcher in (narrow, wide)]
    assert sizes[1] > sizes[0] and moved[1] == pytest.approx(moved[0], rel=1e-4)  # all that is new is still zero


def test_partial_channels_keep_their_widths() -> None:
    narrow, wide = (
        prepare_search(small_data(), "pc-darts", dataclasses.replace(RECIPE, tensor_cores=cores), seed=0, device="cpu")
        for cores in (False, True)
    )
    shapes = [[tuple(p.shape) for p in searcher.shared.parameters] for searcher, _, _ in (narrow, wide)]
    assert shapes[0] == shapes[1]
