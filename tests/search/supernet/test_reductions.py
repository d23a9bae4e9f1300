"""A supernet reduces where the network it is searched for will, so that its cells see maps of those sizes."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from sphynx.data.images import Data, ImageSet, make_data
from sphynx.errors import InputError
from sphynx.search.recipe import SearchRecipe, load_recipe
from sphynx.search.search import prepare_search
from sphynx.search.supernet.reductions import early_places, places_in_another_depth
from sphynx.search.supernet.supernet import Supernet
from sphynx.space.design import default_reduce_positions


def images() -> Data:
    pixels = torch.arange(8, dtype=torch.uint8).view(8, 1, 1, 1).repeat(1, 3, 32, 32)
    part = ImageSet(pixels, torch.arange(8) % 2, ("even", "odd"))
    return make_data("small", part, part, where="small")


def sizes_of_cells(recipe: SearchRecipe) -> list[tuple[int, int]]:
    """(pixels per side, channels) of what each cell of the supernet gives out, in a real pass."""
    searcher, halves, _ = prepare_search(images(), "darts", recipe, seed=0, device="cpu")
    supernet, seen = searcher.shared.network, list[tuple[int, int]]()

    def note(_cell: nn.Module, _inputs: Any, y: Tensor) -> None:
        seen.append((y.shape[-1], y.shape[1]))

    assert isinstance(supernet, Supernet)
    for cell in supernet.cells:
        cell.register_forward_hook(note)
    x, _ = next(iter(halves.evaluation()))
    with torch.no_grad():
        supernet(x, searcher.strategy.mixtures())
    return seen


@pytest.mark.parametrize(
    ("reduce_at", "sizes"),
    [
        ([], [(32, 1), (16, 4), (16, 4), (8, 16), (8, 16)]),
        ([0, 1], [(16, 4), (8, 16), (8, 16), (8, 16), (8, 16)]),
        ([0, 1, 3], [(16, 4), (8, 16), (8, 16), (4, 64), (4, 64)]),
    ],
)
def test_cells_are_searched_at_these_sizes(reduce_at: list[int], sizes: list[tuple[int, int]]) -> None:
    overrides = {"reduce_at": reduce_at, "channels": 1, "nodes": 4, "batch_size": 2}
    assert sizes_of_cells(load_recipe("fast", overrides)) == sizes


def test_only_the_papers_recipe_reduces_where_the_paper_searched() -> None:
    assert load_recipe("paper").reduce_positions == default_reduce_positions(8) == (2, 5)
    for name in ("fast", "small", "smoke"):
        assert load_recipe(name).reduce_positions == (0, 1)


@pytest.mark.parametrize("reduce_at", [[1, 0], [0, 0], [0, 5], [-1, 2]])
def test_places_outside_the_supernet_or_out_of_order_are_refused(reduce_at: list[int]) -> None:
    with pytest.raises(InputError, match=r"ascending positions from 0 to 4 \(depth 5\), such as \[0, 1\]"):
        load_recipe("fast", {"reduce_at": reduce_at})


def test_early_places_are_those_of_the_papers_and_of_the_shipped_networks() -> None:
    assert early_places(5, 2) == (0, 1)  # the paper, 25.6K
    assert early_places(5, 3) == (0, 1, 3)  # the shipped 25.6K network
    assert early_places(9, 4) == (0, 1, 3, 6)


def test_given_places_keep_their_share_of_the_depth() -> None:
    assert places_in_another_depth((0, 1, 8), 10, 5) == (0, 1, 4)
    assert places_in_another_depth(default_reduce_positions(10), 10, 5) == default_reduce_positions(5)
    with pytest.raises(InputError, match="no room for the network's 3 reduce cells") as refused:
        places_in_another_depth((0, 1, 8), 10, 2)
    assert '`settings={"cells.depth": 4}`' in refused.value.remedy


@given(st.integers(1, 20), st.integers(1, 20), st.data())
def test_all_places_ascend_within_the_supernet(depth: int, other: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, min(depth, other)))
    places = data.draw(st.permutations(range(depth)).map(lambda order: tuple(sorted(order[:count]))))
    for found in (early_places(other, count), places_in_another_depth(places, depth, other)):
        assert len(found) == count and found[0] >= 0 and found[-1] < other
        assert all(before < after for before, after in pairwise(found))
    assert places_in_another_depth(places, depth, depth) == places
