"""Macro designs: counts as torch has them, layers of equally many ReLUs, files, the same answers where compiled."""

import dataclasses
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

import sphynx
from sphynx.cli.main import app
from sphynx.errors import InputError
from sphynx.network.build import build_network
from sphynx.network.observe import observe
from sphynx.network.trained import count_parameters
from sphynx.reduce.methods.cryptonas import random_networks
from sphynx.report.naming import describe_network
from sphynx.space.files import any_design_from_json
from sphynx.space.macro import MacroDesign, MacroLayer
from sphynx.space.tally import Shape
from tests.compiler.test_reduced import settled
from tests.reduce.planted import noisy_data

LAYERS = (
    (MacroLayer(3), MacroLayer(5, separable=True), MacroLayer(3, skips=(0,))),
    (MacroLayer(5, separable=True), MacroLayer(3)),
)
DESIGN = MacroDesign(2, LAYERS, Shape(1, 8, 8), 3)


def test_every_layer_has_equally_many_relus() -> None:
    assert DESIGN.relus == 6 * 2 * 64
    assert [row.relus for row in DESIGN.account.rows] == [0, *[128] * 6]


def test_counts_are_those_of_the_network() -> None:
    network = build_network(DESIGN)
    assert count_parameters(network) == DESIGN.parameters and observe(network, DESIGN.image).relus == DESIGN.relus
    assert any_design_from_json(DESIGN.to_json()) == DESIGN


def test_the_compiled_network_answers_alike() -> None:
    compiled = sphynx.compile_network(settled(DESIGN), calibrate=noisy_data())
    assert compiled.judged is not None and compiled.judged.read_error is not None
    assert compiled.judged.read_error < 1e-4 and compiled.judged.error < 0.05


def test_it_is_shown_and_named(tmp_path: Path) -> None:
    DESIGN.save(tmp_path / "design.json")
    shown = CliRunner().invoke(app, ["show", str(tmp_path / "design.json")], catch_exceptions=False)
    assert "macro network, 5 layers, C=2" in shown.stdout
    assert describe_network(DESIGN) == "macro network, 5 layers, C=2"


def test_random_networks_use_their_budget() -> None:
    drawn = random_networks(50_000, Shape(3, 32, 32), 100, 8, seed=0)
    assert len(set(drawn)) == 8 and all(40_000 < network.relus <= 50_000 for network in drawn)
    assert drawn == random_networks(50_000, Shape(3, 32, 32), 100, 8, seed=0)
    assert build_network(drawn[0]).eval()(torch.zeros(1, 3, 32, 32)).shape == (1, 100)
    with pytest.raises(InputError, match="fewer than one channel needs"):
        random_networks(5_000, Shape(3, 32, 32), 100, 8, seed=0)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"channels": 0}, "at least 1"),
        ({"stages": ()}, "every stage needs a layer"),
        ({"stages": ((MacroLayer(4),),)}, "kernel of 4"),
        ({"stages": ((MacroLayer(3), MacroLayer(3, skips=(0,))),)}, "cannot skip from"),
    ],
)
def test_what_is_no_design_is_refused(changes: dict[str, object], what: str) -> None:
    with pytest.raises(InputError, match=what):
        dataclasses.replace(DESIGN, **changes)  # type: ignore[arg-type]
