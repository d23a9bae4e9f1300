"""Planted truth: methods that choose ReLUs remove exactly those that are known to be useless."""

from collections.abc import Callable
from pathlib import Path

import pytest

from sphynx.errors import InputError
from sphynx.reduce.methods.autorep import choose_autorep
from sphynx.reduce.methods.channels import choose_channels
from sphynx.reduce.methods.deepreduce import layers_within, stages_of
from sphynx.reduce.methods.delphi import choose_delphi
from sphynx.reduce.methods.safenet import choose_safenet
from sphynx.reduce.methods.senet import choose_senet
from sphynx.reduce.methods.snl import choose_snl
from sphynx.reduce.task import Choice, Task
from tests.reduce.planted import ALL_RELUS, NEEDED, USEFUL_RELUS, letters_of, planted_task


def test_the_planted_network_has_as_many_relus_as_it_says(tmp_path: Path) -> None:
    task = planted_task(tmp_path)
    assert task.all_relus == ALL_RELUS == task.original.design.relus and list(task.layers) == list(NEEDED)


def test_channels_removes_exactly_the_useless_relus(tmp_path: Path) -> None:
    chosen = choose_channels(planted_task(tmp_path, rounds=2, search_epochs=2, search_rate=1e-4))
    assert letters_of(chosen.design) == NEEDED and chosen.design.relus == USEFUL_RELUS


def test_snl_removes_exactly_the_useless_relus(tmp_path: Path) -> None:
    chosen = choose_snl(planted_task(tmp_path, search_epochs=20, search_rate=1e-4))
    assert letters_of(chosen.design) == NEEDED and chosen.design.relus == USEFUL_RELUS


@pytest.mark.parametrize("choose", [pytest.param(choose_autorep, marks=pytest.mark.slow), choose_safenet])
def test_squares_take_the_places_of_exactly_the_useless_relus(tmp_path: Path, choose: Callable[[Task], Choice]) -> None:
    chosen = choose(planted_task(tmp_path, search_epochs=20, search_rate=1e-3))
    assert letters_of(chosen.design) == {name: kinds.replace("i", "s") for name, kinds in NEEDED.items()}


def test_senet_removes_exactly_the_useless_relus(tmp_path: Path) -> None:
    chosen = choose_senet(planted_task(tmp_path, search_epochs=1, search_rate=1e-4))
    assert letters_of(chosen.design) == NEEDED


def test_delphi_squares_the_layer_that_is_useless(tmp_path: Path) -> None:
    useless = 6 * 16
    chosen = choose_delphi(planted_task(tmp_path, ALL_RELUS - useless, search_epochs=3, search_rate=1e-4))
    first, second, third = letters_of(chosen.design).values()
    assert (first, second, third) == ("r" * 6, "s" * 6, "r" * 8)


def test_snl_spends_no_more_than_any_budget(tmp_path: Path) -> None:
    chosen = choose_snl(planted_task(tmp_path, 33, search_epochs=1, search_rate=1e-4))
    assert chosen.design.relus == 33
    assert {kind for kinds in letters_of(chosen.design).values() for kind in kinds} == {"r", "i"}


def test_deepreduce_culls_the_least_critical_stages_first(tmp_path: Path) -> None:
    layers = planted_task(tmp_path).layers
    large, small = stages = stages_of(layers)
    assert stages == [list(NEEDED)[:2], list(NEEDED)[2:]]  # maps of 4x4 and of 2x2
    sizes = {name: shape.size for name, shape in layers.items()}
    assert layers_within(layers, stages, [0.1, 0.2], sizes[small[0]]) == set(small)
    thinned = {*small, large[0]}
    assert layers_within(layers, stages, [0.1, 0.2], sum(sizes[name] for name in thinned)) == thinned
    assert layers_within(layers, stages, [0.2, 0.1], sizes[large[0]]) == {large[0]}
    with pytest.raises(InputError, match="96 ReLUs where it is thinned"):
        layers_within(layers, stages, [0.2, 0.1], 50)
