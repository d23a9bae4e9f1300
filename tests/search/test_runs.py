"""Whole searches and placements on a few images: what they leave behind, and that they continue bit for bit."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch

from sphynx.data.images import Data, ImageSet, make_data
from sphynx.errors import InputError, InterruptedWorkError, SphynxError
from sphynx.report.verb_figures import draw_placement
from sphynx.run.folder import RunFolder
from sphynx.run.interrupt import Interrupt
from sphynx.run.progress import QUIET
from sphynx.run.work import Work
from sphynx.search import epochs, search
from sphynx.search.objective import Objective
from sphynx.search.placement import place as placing
from sphynx.search.placement.candidates import placements
from sphynx.search.placement.recipe import PlacementRecipe
from sphynx.search.ranking import Ranked, random_cells, rank
from sphynx.search.recipe import Epoch, SearchRecipe, load_recipe
from sphynx.search.seeds import search_seeds
from sphynx.search.strategies import STRATEGIES, is_relaxed
from sphynx.search.strategies.darts import Darts
from sphynx.search.supernet.cellspace import CellSpace
from sphynx.space.design import Design
from sphynx.space.genotype import Genotype
from sphynx.space.published_cells import SPHYNX
from sphynx.space.tally import Shape

RECIPE = SearchRecipe(
    depth=2,
    channels=1,
    nodes=4,
    epochs=3,
    batch_size=8,
    pc_channel_divisor=2,
    pc_warmup=0.0,
    random_candidates=3,
    random_finalists=2,
    enas_derive_samples=2,
    enas_hidden=8,
    perturbation_tune_steps=1,
    hessian_iterations=2,
)
PLACES = PlacementRecipe(epochs=3, batch_size=8)


def small_data() -> Data:
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(256, (40, 1, 6, 6), generator=generator, dtype=torch.uint8)
    part = ImageSet(images, torch.arange(40) % 2, ("even", "odd"))
    return make_data("small", part, part, where="small")


def small_design() -> Design:
    return Design(SPHYNX, 1, 3, (0, 1), Shape(1, 6, 6), 2)


class CutError(Exception):
    """Stands for a kill in the middle of an epoch."""


def cut_in_epoch(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    whole = epochs.Halves.pairs

    def pairs(self: epochs.Halves, epoch: int, start: int = 0) -> Any:
        yield next(iter(whole(self, epoch, start)))
        if epoch == number:
            raise CutError
        yield from list(whole(self, epoch, start))[1:]

    monkeypatch.setattr(epochs.Halves, "pairs", pairs)


def interrupt_in(monkeypatch: pytest.MonkeyPatch, number: int, step: int) -> None:
    """A real Ctrl-C while a step of an epoch runs."""
    whole = epochs.Halves.pairs

    def pairs(self: epochs.Halves, epoch: int, start: int = 0) -> Any:
        for here, pair in enumerate(whole(self, epoch, start), start):
            if (epoch, here) == (number, step):
                os.kill(os.getpid(), signal.SIGINT)
            yield pair

    monkeypatch.setattr(epochs.Halves, "pairs", pairs)


def save_every_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epochs.Watch, "save_seconds", 0.0)
    monkeypatch.setattr(
        epochs.Watch, "__init__", lambda self, *a, **k: _init_watch(self, *a, **{**k, "save_seconds": 0.0})
    )


_init_watch = epochs.Watch.__init__


def final_state(folder: Path) -> Any:
    state = torch.load(folder / "checkpoint.pt", weights_only=True)["state"]
    return {**state, "rows": without_seconds(state["rows"])}


def without_seconds(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """How long an epoch took is the one thing that no two runs share."""
    return [{key: value for key, value in row.items() if key != "seconds"} for row in rows]


def assert_equal(one: Any, other: Any) -> None:
    if isinstance(one, torch.Tensor):
        assert torch.equal(one, other)
    elif isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            assert_equal(one[key], other[key])
    elif isinstance(one, list | tuple):
        assert len(one) == len(other)
        for ours, theirs in zip(one, other, strict=True):
            assert_equal(ours, theirs)
    else:
        assert one == other


@pytest.mark.parametrize("strategy", ["darts", "gdas", "enas", "random"])
def test_a_killed_search_continues_bit_for_bit(strategy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_every_epoch(monkeypatch)
    data = small_data()
    whole = search.search_cells(data, strategy, RECIPE, tmp_path / "whole", Work(voice=QUIET))
    with monkeypatch.context() as patch:
        cut_in_epoch(patch, 2)
        with pytest.raises(CutError):
            search.search_cells(data, strategy, RECIPE, tmp_path / "cut", Work(voice=QUIET))
    assert not (tmp_path / "cut" / "genotype.json").exists()
    continued = search.search_cells(data, strategy, RECIPE, tmp_path / "cut", Work(voice=QUIET))
    assert continued == whole
    assert_equal(final_state(tmp_path / "cut"), final_state(tmp_path / "whole"))
    cut, uncut = (without_seconds(RunFolder(tmp_path / name).read_metrics()) for name in ("cut", "whole"))
    assert cut == uncut


@pytest.mark.parametrize("strategy", ["darts-unrolled", "gdas", "enas"])
@pytest.mark.parametrize("step", [0, -1])
def test_an_interrupt_keeps_the_place_within_an_epoch(
    strategy: str, step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No step is lost or taken twice, whichever it was that was interrupted."""
    data = small_data()
    whole = search.search_cells(data, strategy, RECIPE, tmp_path / "whole", Work(voice=QUIET))
    steps = len(data.train) // 2 // RECIPE.batch_size
    assert steps > 1
    with monkeypatch.context() as patch:
        interrupt_in(patch, 1, step % steps)
        with pytest.raises(InterruptedWorkError):
            search.search_cells(data, strategy, RECIPE, tmp_path / "cut", Work(voice=QUIET))
    begun = torch.load(tmp_path / "cut" / "checkpoint.pt", weights_only=True)["state"]["begun"]
    assert begun["steps"] == step % steps + 1
    assert search.search_cells(data, strategy, RECIPE, tmp_path / "cut", Work(voice=QUIET)) == whole
    assert_equal(final_state(tmp_path / "cut"), final_state(tmp_path / "whole"))


def test_the_released_search_differs_from_the_papers_in_what_its_file_says() -> None:
    """Settings that a recipe leaves out have defaults, not the paper's values."""
    paper, released = (load_recipe(name).to_json() for name in ("paper", "released"))
    assert {name for name in paper if paper[name] != released[name]} == {
        "supernet", "channels", "nesterov", "ranked_by", "epoch",
    }  # fmt: skip


def test_an_interrupted_search_says_how_to_continue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Pressed(Interrupt):
        """Ctrl-C before the first step."""

        def __enter__(self) -> Interrupt:
            super().__enter__()
            self.requested = True
            return self

    with monkeypatch.context() as patch:
        patch.setattr(epochs, "Interrupt", Pressed)
        with pytest.raises(InterruptedWorkError) as stopped:
            search.search_cells(small_data(), "gdas", RECIPE, tmp_path, Work(voice=QUIET))
    assert "resume=True" in stopped.value.remedy
    assert search.search_cells(small_data(), "gdas", RECIPE, tmp_path, Work(voice=QUIET)).epochs == 3


def test_what_a_search_leaves_behind(tmp_path: Path) -> None:
    result = search.search_cells(small_data(), "darts", RECIPE, tmp_path, Work(voice=QUIET))
    assert Genotype.load(tmp_path / "genotype.json") == result.genotype
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [row["epoch"] for row in rows] == [0, 1, 2]
    assert all(row["genotype"]["format"] == "sphynx-genotype/1" for row in rows)
    strengths = json.loads((tmp_path / "strengths.json").read_text())
    assert strengths["operations"][-1] == "zero"
    assert len(strengths["epochs"]) == 3
    assert len(strengths["epochs"][0]["normal"]) == 2
    with pytest.raises(InputError, match="another design or other settings"):
        search.search_cells(small_data(), "darts", RECIPE, tmp_path, Work(seed=1, voice=QUIET))


def test_a_refused_search_leaves_what_the_folder_says_of_its_run(tmp_path: Path) -> None:
    """A folder is refused if another process is at work in it or it holds a search of other settings."""
    places = placements(3, 2, "all")
    starts: tuple[Callable[[int], object], ...] = (
        lambda seed: search.search_cells(
            small_data(), "gdas", RECIPE, tmp_path / "cells", Work(seed=seed, voice=QUIET)
        ),
        lambda seed: placing.place(
            small_design(), small_data(), PLACES, places, tmp_path / "places", Work(seed=seed, voice=QUIET)
        ),
    )
    for start, out in zip(starts, ("cells", "places"), strict=True):
        start(0)
        config = (tmp_path / out / "config.json").read_text()
        with pytest.raises(InputError, match="belongs to another"):
            start(1)
        with RunFolder(tmp_path / out).alone(), pytest.raises(InputError, match="another process"):
            start(1)
        assert (tmp_path / out / "config.json").read_text() == config


@pytest.mark.parametrize("epoch", ["last", "best"])
def test_a_search_that_skips_stop_returns_none_of_the_cells_with_too_many(epoch: Epoch, tmp_path: Path) -> None:
    """The skips' scores rise from epoch to epoch, so that the last epoch is the best one too."""

    class Skipping(Darts):
        def start_epoch(self, epoch: int) -> None:
            super().start_epoch(epoch)
            skip = self.space.operations.index("skip")
            with torch.no_grad():
                self.alpha["normal"].copy_(torch.eye(len(self.space.candidates))[skip if epoch else 0].mul(9))

    recipe = SearchRecipe(**{**RECIPE.to_json(), "max_skips": 1, "epoch": epoch})
    objective = Objective(reward=lambda logits, _: logits.new_tensor(float(next(rising))))
    rising = count()
    found = search.search_cells(small_data(), Skipping, recipe, tmp_path, Work(voice=QUIET), objective=objective)
    assert found.stopped == "skips" and found.epochs == 2
    assert not any(edge.operation == "skip" for node in found.genotype.normal for edge in node)


def test_stopping_and_selection_options(tmp_path: Path) -> None:
    values = {**RECIPE.to_json(), "hessian": True, "hessian_window": 1, "hessian_ratio": 1e9, "epochs": 4}
    stopped = search.search_cells(small_data(), "darts", SearchRecipe(**values), tmp_path / "h", Work(voice=QUIET))
    rows = [json.loads(line) for line in (tmp_path / "h" / "metrics.jsonl").read_text().splitlines()]
    if any(row["eigenvalue"] > 0 for row in rows[1:]):
        assert stopped.stopped == "eigenvalue"
        assert stopped.genotype.to_json() == rows[-2]["genotype"]
    values = {**RECIPE.to_json(), "selection": "perturbation", "epochs": 1}
    chosen = search.search_cells(small_data(), "gaea", SearchRecipe(**values), tmp_path / "p", Work(voice=QUIET))
    assert chosen.genotype.name == "perturbation"
    with pytest.raises(InputError, match="mixes all operations"):
        search.search_cells(small_data(), "gdas", SearchRecipe(**values), tmp_path / "g", Work(voice=QUIET))


def test_a_strategy_of_your_own_that_is_relaxed_may_be_stopped_by_the_hessian(tmp_path: Path) -> None:
    class Mine(Darts):
        """Mixes all operations, as the class that it extends."""

    found = search.search_cells(small_data(), Mine, replace(RECIPE, hessian=True), tmp_path, Work(voice=QUIET))
    assert found.strategy == "Mine"
    assert [name for name in STRATEGIES if is_relaxed(name)] == [
        *("darts", "darts-unrolled", "darts-2nd", "pc-darts", "gaea"),
    ]


def test_several_seeds_with_a_ranking(tmp_path: Path) -> None:
    def one(seed: int, folder: Path) -> search.SearchResult:
        return search.search_cells(small_data(), "random", RECIPE, folder, Work(seed=seed, voice=QUIET))

    def rank_in_turn(cells: Mapping[str, Genotype], drawn: Mapping[str, Genotype]) -> tuple[Ranked, ...]:
        scores = iter([0.3, 0.8, 0.95])
        return rank(cells, drawn, lambda _genotype, _epochs: next(scores), 1)

    drawn = random_cells(CellSpace(RECIPE.nodes), 1, seed=0)
    summary = search_seeds(one, tmp_path, [0, 1], rank=rank_in_turn, drawn=drawn)
    assert (tmp_path / "seed-0" / "genotype.json").exists()
    assert [entry.label for entry in summary.ranking] == ["random cells 0", "random, seed 1", "random, seed 0"]
    assert summary.chosen == summary.results[1].genotype
    assert Genotype.load(tmp_path / "genotype.json") == summary.chosen
    assert json.loads((tmp_path / "summary.json").read_text())["spread"]["deviation"] is not None
    summary = search_seeds(one, tmp_path, [0, 1], rank=rank_in_turn, drawn=drawn, drawn_may_win=True)
    assert summary.chosen == summary.ranking[0].genotype
    assert summary.ranking[0].label == "random cells 0"


def test_a_search_that_diverges_says_so(tmp_path: Path) -> None:
    """In its first epoch, before the first checkpoint."""
    recipe = SearchRecipe(**{**RECIPE.to_json(), "learning_rate": 1e30, "gradient_clip": 1e30})
    with pytest.raises(SphynxError, match=r"the loss became \w+ in epoch 0") as caught:
        search.search_cells(small_data(), "darts", recipe, tmp_path, Work(voice=QUIET))
    assert caught.value.remedy == "Lower the learning rate."


def test_a_killed_placement_continues_bit_for_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_every_epoch(monkeypatch)
    data, design, places = small_data(), small_design(), placements(3)
    whole = placing.place(design, data, PLACES, places, tmp_path / "whole", Work(voice=QUIET))
    with monkeypatch.context() as patch:
        cut_in_epoch(patch, 1)
        with pytest.raises(CutError):
            placing.place(design, data, PLACES, places, tmp_path / "cut", Work(voice=QUIET))
    continued = placing.place(design, data, PLACES, places, tmp_path / "cut", Work(voice=QUIET))
    assert continued == whole
    assert_equal(final_state(tmp_path / "cut"), final_state(tmp_path / "whole"))
    assert Design.load(tmp_path / "cut" / "design.json").reduce_positions == whole.best
    assert len(whole.beta_hat) == 3
    assert all(abs(sum(row) - 1) < 1e-5 for row in whole.beta_hat)


def test_candidates_share_their_stem_and_nothing_else() -> None:
    networks, stem = placing.candidate_networks(small_design(), placements(3))
    owned = [{id(p) for p in network.parameters()} for network in networks]
    assert owned[0] & owned[1] == {id(p) for p in stem.parameters()}


def test_the_exhaustive_search_and_its_figure(tmp_path: Path) -> None:
    design, places = small_design(), placements(3)
    result = placing.place(design, small_data(), PLACES, places, tmp_path, Work(voice=QUIET))
    draw_placement(result, tmp_path / "without.svg")
    full = placing.with_exhaustive(result, design, lambda d: 0.5 + 0.1 * d.reduce_positions[0], tmp_path)
    draw_placement(full, tmp_path / "with.svg")
    assert full.accuracy == pytest.approx((0.5, 0.5, 0.6))
    assert json.loads((tmp_path / "beta.json").read_text())["accuracy"] is not None
    assert "<svg" in (tmp_path / "with.svg").read_text()
    assert "<svg" in (tmp_path / "without.svg").read_text()


def test_a_design_for_other_images_is_refused(tmp_path: Path) -> None:
    design = Design(SPHYNX, 1, 3, (0, 1), Shape(3, 32, 32), 100)
    with pytest.raises(InputError, match="classes"):
        placing.place(design, small_data(), PLACES, placements(3), tmp_path, Work(voice=QUIET))


def test_evaluation_mixes_the_classes_of_a_sorted_set() -> None:
    """A supernet normalises by the batch: of a folder in its own order each batch would hold a class or two."""
    labels = torch.arange(10).repeat_interleave(400)
    pixels = torch.arange(4000).to(torch.uint8).view(-1, 1, 1, 1).expand(-1, 3, 2, 2).contiguous()
    sorted_set = ImageSet(pixels, labels, tuple("abcdefghij"))
    halves = epochs.Halves(
        make_data("sorted", sorted_set, sorted_set, where="sorted"), 32, flip=False, crop=False, seed=3, device="cpu"
    )
    batches = list(halves.evaluation())
    assert all(len(y.unique()) == 10 for _, y in batches)
    assert torch.equal(torch.cat([y for _, y in batches]).sort().values, torch.arange(10).repeat_interleave(200))
    again = torch.cat([y for _, y in halves.evaluation()])
    assert torch.equal(again, torch.cat([y for _, y in batches]))


def test_no_image_is_evaluated_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its maps may be a single pixel, which has no deviation."""
    monkeypatch.setattr(epochs, "EVALUATION_BATCH", 19)
    halves = epochs.Halves(small_data(), 8, flip=False, crop=False, seed=0, device="cpu")
    assert [len(y) for _, y in halves.evaluation()] == [20]
    monkeypatch.setattr(epochs, "EVALUATION_BATCH", 9)
    assert [len(y) for _, y in halves.evaluation()] == [9, 9, 2]


def test_one_pixel_images_are_searched(tmp_path: Path) -> None:
    """Crops took the pixel away: of a batch of equal images batch norm makes gradients that overflow."""
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(256, (40, 3, 1, 1), generator=generator, dtype=torch.uint8)
    part = ImageSet(images, torch.arange(40) % 2, ("even", "odd"))
    recipe = replace(RECIPE, depth=4, nodes=6, batch_size=4, epochs=1, crop=True)
    search.search_cells(
        make_data("pixels", part, part, where="pixels"), "darts-2nd", recipe, tmp_path, Work(voice=QUIET)
    )


def test_images_that_are_all_alike_are_refused(tmp_path: Path) -> None:
    part = ImageSet(torch.full((40, 3, 4, 4), 7, dtype=torch.uint8), torch.arange(40) % 2, ("even", "odd"))
    with pytest.raises(InputError, match="the training images of grey are all alike"):
        search.search_cells(
            make_data("grey", part, part, where="grey"), "darts-2nd", RECIPE, tmp_path, Work(voice=QUIET)
        )
