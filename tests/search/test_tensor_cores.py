"""The layout and widths that tensor cores want change the order of additions, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Any

import pytest
import torch

from sphynx.search.placement.candidates import placements
from sphynx.search.placement.place import prepare_placement
from sphynx.search.search import prepare_search
from tests.search.test_runs import PLACES, RECIPE, small_data, small_design


def losses(prepared: Any, steps: int) -> tuple[list[float], Any]:
    learner, halves, _ = prepared
    learner.start_epoch(0)
    return [float(learner.step(*pair)) for pair in islice(halves.pairs(0), steps)], learner


@pytest.mark.parametrize("strategy", ["darts", "pc-darts", "gdas"])
def test_a_supernet_learns_the_same_with_channels_last(strategy: str) -> None:
    plain, last = (
        losses(prepare_search(small_data(), strategy, replace(RECIPE, tensor_cores=on), seed=0, device="cpu"), 2)[0]
        for on in (False, True)
    )
    assert last == pytest.approx(plain, rel=1e-4)


def test_placement_learns_the_same_in_wide_networks() -> None:
    found = []
    for on in (False, True):
        recipe = replace(PLACES, tensor_cores=on, weight_decay=1e-2)
        prepared = prepare_placement(small_design(), small_data(), recipe, placements(3), seed=0, device="cpu")
        found.append(losses(prepared, 2))
    (plain, narrow), (last, wide) = found
    assert last == pytest.approx(plain, rel=1e-4)
    torch.testing.assert_close(wide.beta, narrow.beta, rtol=1e-3, atol=1e-5)
    assert wide.networks[0].channel_multiple == 8 and wide.networks[0].stem is wide.networks[1].stem
    kernel = next(p for p in wide.networks[0].parameters() if p.ndim == 4 and p.shape[1] > 1 and p.shape[2] > 1)
    assert kernel.is_contiguous(memory_format=torch.channels_last)
