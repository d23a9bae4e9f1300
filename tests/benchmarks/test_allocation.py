"""Candidates of a comparison of allocations: other depths cost as many seconds, by prices of their own."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest
from benchmarks.allocation import budget_of, candidates_of

from sphynx.errors import InputError
from sphynx.space.prices import Prices
from sphynx.space.stream import StreamDesign, stages_from_text
from sphynx.space.tally import Shape

IMAGE = Shape(3, 32, 32)
ROUND = 0.003  # seconds of a block beside its channels


def _design(text: str) -> StreamDesign:
    stages, stem = stages_from_text(text, IMAGE)
    return StreamDesign(stages, IMAGE, 100, stem.stride, stem_kernel=stem.kernel)


def _prices(text: str) -> Prices:
    design = _design(text)
    costs = [side * side * 1e-6 for side, stage in zip((16, 8, 4), design.stages, strict=True) for _ in stage.channels]
    return Prices(text, "lan", "gmw", "test", 0.01 + ROUND * design.blocks, tuple(costs), "total")


def test_candidates_of_other_depths_take_as_many_seconds(tmp_path: Path) -> None:
    start, deeper = "16:64:24 8:128:72x2 4:256:316x2", "16:64:12 8:128:56x3 4:256:184x4"
    files = {text: tmp_path / f"{number}.json" for number, text in enumerate((start, deeper))}
    for text, file in files.items():
        _prices(text).save(file)
    settings = argparse.Namespace(prices=files[start], also=[files[deeper]], parts=5, randoms=2)
    design = _design(start)
    found = candidates_of(design, budget_of(design, settings), settings)
    total = _prices(start).seconds(design)
    assert found["given"] == design and found["8 blocks, uniform"].blocks == 8
    assert {one.blocks for one in found.values()} == {5, 8}
    for name, one in found.items():
        prices = _prices(deeper if one.blocks == 8 else start)
        assert prices.seconds(one) <= total * (1 + 1e-9) and prices.seconds(one) > 0.97 * total, name
    assert found["8 blocks, uniform"].relus < design.relus  # three more blocks are paid with ReLUs
    assert len({one.stem_stride for one in found.values()}) == 1
    settings.also = []
    assert all(one.blocks == 5 for one in candidates_of(design, budget_of(design, settings), settings).values())


def test_a_design_with_others_prices_is_refused(tmp_path: Path) -> None:
    _prices("16:64:24 8:128:72x2 4:256:316x2").save(tmp_path / "p.json")
    settings = argparse.Namespace(prices=tmp_path / "p.json", also=[], parts=5, randoms=0)
    with pytest.raises(InputError, match="the prices are for"):
        budget_of(_design("16:64:12 8:128:56x3 4:256:184x4"), settings)
