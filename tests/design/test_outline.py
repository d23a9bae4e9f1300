"""Reduce cells: where they may stand, how many there are, and where a supernet has them, before anything is trained."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch

from sphynx.data.images import ImageSet, make_data
from sphynx.design.outline import usual_reduce_cells
from sphynx.design.pipeline import Pipeline
from sphynx.errors import InputError
from sphynx.run.work import Work
from sphynx.search.recipe import load_recipe as load_search_recipe
from sphynx.space.account import relu_count
from sphynx.space.choices import Stem
from sphynx.space.design import Design
from sphynx.space.published_cells import SPHYNX
from sphynx.space.tally import Shape
from tests.design.requests import CPU, pipeline, request


def test_reduce_cells_stay_within_the_budget(tmp_path: Path) -> None:
    """Images of 4x4 can be halved twice; a third reduce cell leaves one pixel as it is, with four times the ReLUs."""
    with pytest.raises(InputError, match="with 3 reduce cells the network has at least 96 ReLUs, the budget is 48"):
        pipeline(tmp_path, reduce_cells=3, candidates="all")
    assert not list(tmp_path.iterdir())
    large = torch.zeros(6, 1, 28, 28, dtype=torch.uint8)  # 28, 14, 7, 4: the third adds three tenths to what follows
    images = ImageSet(large, torch.arange(6) % 3, ("a", "b", "c"))
    asked = request(relu_budget=28 * 28 * 7, reduce_cells=3, candidates="all")
    late = Pipeline(asked, make_data("large", images, images, where="large"), tmp_path, Work(device=CPU))
    assert late.design.depth == 7 and {place[-1] for place in late.places} == {6}
    assert late.design.reduce_positions in late.places  # it is timed before it is placed


@pytest.mark.parametrize(
    ("channels", "depth", "side", "stem", "usual"),
    [
        (5, 5, 32, "small", 3),
        (5, 5, 64, "small", 3),
        (5, 10, 32, "small", 3),
        (10, 10, 32, "small", 2),  # 35 candidates of 127M parameters would be placed at once
        (5, 4, 32, "small", 2),  # no choice of places
        (11, 5, 32, "small", 2),  # 704 channels
        (5, 5, 28, "small", 2),  # 28, 14, 7, 4: more ReLUs
        (5, 5, 16, "small", 2),
        (10, 10, 224, "imagenet", 2),  # the stem leaves 28
        (5, 5, 256, "imagenet", 3),
    ],
)
def test_a_third_reduce_cell_where_it_costs_no_relus(
    channels: int, depth: int, side: int, stem: Stem, usual: int
) -> None:
    design = Design(SPHYNX, channels, depth, (0, 1), Shape(3, side, side), stem=stem, conv_stack="single")
    assert usual_reduce_cells(design, "paper") == usual
    if usual == 3:
        thrice = dataclasses.replace(design, reduce_positions=(0, 1, 3))
        assert relu_count(thrice) == relu_count(design)


def test_a_third_reduce_cell_is_not_usual_where_its_candidates_are_too_many() -> None:
    design = Design(SPHYNX, 5, 10, (0, 1), Shape(3, 32, 32), conv_stack="single")
    assert usual_reduce_cells(design, "paper") == 3  # 35 candidates
    assert usual_reduce_cells(design, "all") == 2  # 120


def test_cells_are_searched_and_ranked_with_the_usual_reduce_cells(tmp_path: Path) -> None:
    images = ImageSet(torch.zeros(6, 1, 32, 32, dtype=torch.uint8), torch.arange(6) % 3, ("a", "b", "c"))
    asked = request(relu_budget=32 * 32 * 5, search=load_search_recipe("small", {"depth": 6}))
    wide = Pipeline(asked, make_data("large", images, images, where="large"), tmp_path, Work(device=CPU))
    assert wide.design.depth == 5 and {len(place) for place in wide.places} == {3}
    assert wide.design.reduce_positions == (0, 1, 3)  # timed and ranked there until it is placed
    assert wide.outline.search_recipe.reduce_positions == (0, 1, 4)


@pytest.mark.parametrize(
    ("changes", "reduce_at"),
    [
        ({}, (0, 1)),
        ({"reduce_cells": 1}, (0,)),
        ({"placement": (1, 2)}, (1, 2)),
        ({"placement": "fixed"}, (1, 2)),
        ({"placement": (1, 2), "search": load_search_recipe("smoke", {"depth": 6})}, (2, 4)),
    ],
)
def test_the_supernet_reduces_as_its_network_will(
    tmp_path: Path, changes: dict[str, Any], reduce_at: tuple[int, ...]
) -> None:
    assert pipeline(tmp_path, **changes).outline.search_recipe.reduce_positions == reduce_at


def test_a_supernet_too_shallow_for_its_network_is_refused_before_any_work(tmp_path: Path) -> None:
    shallow = load_search_recipe("smoke", {"depth": 1, "reduce_at": []})
    with pytest.raises(InputError, match="a supernet of depth 1 has no room"):
        pipeline(tmp_path, search=shallow)
    assert not list(tmp_path.iterdir())
