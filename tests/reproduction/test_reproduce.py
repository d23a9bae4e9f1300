"""Reproduction runs: resumable rows, made-up Tiny-ImageNet and ImageNet folders, kept results beside."""

import dataclasses
import json
import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from reproduction.experiments import EXPERIMENTS
from reproduction.outcomes import read_kept
from reproduction.reproduce import DataSets, Reproduction
from reproduction.reproduction_figure import draw_outcomes
from reproduction.scales import SCALES, Scale

from sphynx.errors import InputError
from sphynx.run.progress import QUIET
from sphynx.train.processes import Processes
from tests.data.layouts import write_classes, write_tiny_imagenet

RESULTS = Path(__file__).parents[2] / "results" / "cifar100"
CPU = Processes(torch.device("cpu"))


def short(data: str) -> Scale:
    """The paper's own recipe for a data set, in one epoch of tiny batches, on tiny networks."""
    return dataclasses.replace(SCALES["full"], seeds=1, epochs={data: 1}, overrides={"batch_size": 2}, small=True)


def test_tiny_imagenet_from_its_own_layout(tmp_path: Path) -> None:
    write_tiny_imagenet(tmp_path / "tiny-imagenet-200")
    scale = short("tiny-imagenet")
    data = DataSets({"tiny-imagenet": str(tmp_path / "tiny-imagenet-200")}, scale)
    reproduction = Reproduction(scale, data, tmp_path / "out", processes=CPU, voice=QUIET)
    experiment = EXPERIMENTS["tiny-imagenet"]
    for row in (experiment.rows[0], experiment.rows[-1]):  # Sphynx and ResNet18
        ours = reproduction.outcome(row, experiment).ours
        assert ours is not None
        assert 0 <= ours.accuracy <= 100
        assert ours.made.here
    assert data.open("tiny-imagenet").train.shape == (3, 64, 64)


def test_imagenet_is_streamed_at_224_with_its_stem_and_recipe(tmp_path: Path) -> None:
    for split in ("train", "val"):
        write_classes(tmp_path / "imagenet" / split, n=2, size=40)
    scale = short("imagenet")
    reproduction = Reproduction(
        scale, DataSets({"": str(tmp_path / "imagenet")}, scale), tmp_path / "out", processes=CPU, voice=QUIET
    )
    experiment = EXPERIMENTS["imagenet"]
    outcome = reproduction.outcome(experiment.rows[0], experiment)
    assert outcome.ours is not None
    # C=2 D=5 with the ImageNet stem: 112^2 * C/2 + 56^2 * C in the stem, 28^2 * C in each cell.
    assert outcome.ours.relus == 112 * 112 + 56 * 56 * 2 + 5 * 28 * 28 * 2
    assert scale.recipe(experiment.rows[0]).schedule == "step"


def test_full_scale_asks_for_data_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPHYNX_DATA", str(tmp_path / "none"))
    scale = SCALES["full"]
    reproduction = Reproduction(scale, DataSets({}, scale), tmp_path, processes=CPU, voice=QUIET)
    for name in ("cifar100", "imagenet"):
        with pytest.raises(InputError, match="no row could be run"):
            reproduction.run(EXPERIMENTS[name])


def test_kept_results_stand_beside_their_rows_and_are_labelled(tmp_path: Path) -> None:
    scale = SCALES["fast"]
    reproduction = Reproduction(
        scale, DataSets({}, scale), tmp_path, processes=CPU, run=False, kept=read_kept([RESULTS])
    )
    outcomes = reproduction.run(EXPERIMENTS["cifar100"])
    kept = {found.folders[0]: found for found in outcomes[0].kept}
    assert "paper-80" in kept
    assert "single-80" in kept
    assert "single-80-kl4" not in kept  # distilled: it belongs to another experiment
    assert "single convolutions" in kept["single-80"].network
    assert kept["paper-80"].accuracy == pytest.approx(62.33)
    assert "NVIDIA H200" in str(kept["paper-80"].made)
    assert not any(outcome.kept for outcome in outcomes[1:])
    assert "NVIDIA H200" in draw_outcomes(EXPERIMENTS["cifar100"], scale, outcomes).to_svg()
    distilled = reproduction.run(EXPERIMENTS["distillation"])
    assert {found.folders[0] for found in distilled[1].kept} >= {"single-80-kl4", "single-200-kl4"}


@pytest.mark.parametrize("change", [{"image": [3, 64, 64], "classes": 200}, {"depth": 6}, {"balancing": "flop"}])
def test_a_kept_result_of_another_network_or_data_set_is_not_shown(tmp_path: Path, change: dict[str, Any]) -> None:
    kept = json.loads((RESULTS / "paper-80.json").read_text())
    kept["config"]["design"] |= change
    (tmp_path / "other.json").write_text(json.dumps(kept))
    (found,) = read_kept([tmp_path])
    assert found.of(EXPERIMENTS["cifar100"].rows[0], {}) is None


def test_files_that_are_no_results_are_refused(tmp_path: Path) -> None:
    (tmp_path / "odd.json").write_text("{}")
    with pytest.raises(InputError, match="lacks result, config, environment"):
        read_kept([tmp_path])


class Travelling:
    """A sweep whose pieces are pickled, as for another machine, and run from the copies."""

    may_repeat = True

    def __init__(self) -> None:
        self.names: list[list[str]] = []

    def map(self, work: Mapping[str, Callable[[], Any]]) -> list[Any]:
        self.names.append(list(work))
        return [piece() for piece in pickle.loads(pickle.dumps(list(work.values())))]


@pytest.mark.slow
def test_rows_that_run_at_once_give_what_rows_in_turn_do(tmp_path: Path) -> None:
    """Two rows that search the same cells and train the same small network: each is made once."""
    rows = [row for row in EXPERIMENTS["nodes"].rows if row.cells == "search:5"][:2]
    experiment, scale, sweep = SimpleNamespace(name="nodes", rows=rows), SCALES["smoke"], Travelling()
    found = []
    ways: tuple[tuple[str, dict[str, Any]], ...] = (("in-turn", {}), ("at-once", {"sweep": sweep}))
    for name, how in ways:
        reproduction = Reproduction(scale, DataSets({}, scale), tmp_path / name, processes=CPU, voice=QUIET, **how)
        found.append([outcome.ours for outcome in reproduction.run(experiment)])  # type: ignore[arg-type]
    for here, there in zip(*found, strict=True):
        assert here is not None and there is not None
        assert (here.network, here.relus, here.accuracy) == (there.network, there.relus, there.accuracy)
    assert sweep.names == [["cells of search:5, cifar100"], [], ["N=5 25.6K, seed 0"]]
