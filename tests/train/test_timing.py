"""What an estimate is made of. How long anything takes is not asserted."""

import pytest
import torch

from sphynx.search.epochs import Halves
from sphynx.search.recipe import load_recipe
from sphynx.search.search import Searcher
from sphynx.train import timing
from tests.train.small import data


@pytest.mark.parametrize(
    ("strategy", "warming"), [("darts", 2), ("pc-darts", 3), ("gdas", 2), ("gaea", 2), ("enas", 2), ("random", 0)]
)
def test_a_search_is_timed_in_and_after_its_warm_up(
    strategy: str, warming: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten epochs: of `warming` only w learns, which here takes a second; later ones take three."""

    def steps(searcher: Searcher, _halves: Halves, epoch: int) -> float:
        return 1.0 if epoch < searcher.strategy.warmup_epochs else 3.0

    monkeypatch.setattr(timing, "_steps_seconds", steps)
    monkeypatch.setattr(timing, "_finish_seconds", lambda *_: 0.0)
    recipe = load_recipe("smoke", {"epochs": 10, "nodes": 4, "batch_size": 12, "warmup": 0.2, "pc_warmup": 0.3})
    found = timing.search_epoch_seconds(data(), strategy, recipe, torch.device("cpu"))
    assert found == pytest.approx((warming + 3 * (10 - warming)) / 10)
