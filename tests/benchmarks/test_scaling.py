"""Lines through measured rows, and the verb that measures them."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks.lines import fit_line
from benchmarks.scaling import scaling
from tools.command import command_line
from typer.testing import CliRunner

from sphynx.bench import clear, private_models
from sphynx.errors import InputError
from sphynx.program.folder import load_program
from sphynx.space.design import Design
from sphynx.space.stream import StreamDesign, stages_from_text
from sphynx.space.tally import Shape
from tests.bench.designs import small_design, small_file

CIFAR = Shape(3, 32, 32)
APP = command_line(scaling)


def test_a_line_is_found_again() -> None:
    x = [25_600.0, 51_200.0, 230_400.0]
    line = fit_line(x, [0.5 + 2e-5 * value for value in x])
    assert (line.intercept, line.slope, line.r_squared) == pytest.approx((0.5, 2e-5, 1.0))
    assert line.at(1e5) == pytest.approx(2.5)


def test_r_squared_is_that_of_numpy() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 10, 30)
    y = 3 * x + rng.normal(0, 4, 30)
    assert fit_line(list(x), list(y)).r_squared == pytest.approx(np.corrcoef(x, y)[0, 1] ** 2)


@pytest.mark.slow
def test_untrained_networks_have_a_trained_ones_ring(tmp_path: Path) -> None:
    """The trained 25.6K network has a ring of 32 bits: five bytes an element would cost a quarter more."""
    model = private_models.untrained_model("25.6k", "single", tmp_path)
    program = load_program(model.folder)
    assert program.relu_count == 25_600 and 29 <= program.ring_bits <= 32
    widths = [step.range_bits for step in program.linears][:-1]
    assert min(widths) >= 26 and max(widths) <= 31  # those of the trained network


def test_other_sizes_are_planned() -> None:
    design = private_models.untrained_design("153.6k", "single")
    assert isinstance(design, Design) and (design.channels, design.depth) == (15, 10)


def test_a_design_gets_random_weights(tmp_path: Path) -> None:
    model = private_models.untrained_model(small_file(tmp_path, "grey", 2), "single", tmp_path / "compiled")
    assert model.design == replace(small_design(2), name="grey") and model.name == "grey"  # its stacks are its own
    assert load_program(model.folder).relu_count == 128


@pytest.mark.slow
def test_a_stream_gets_random_weights_and_a_trained_streams_ring(tmp_path: Path) -> None:
    stages, stem = stages_from_text("16:64:12 8:128:168 4:256:256x2,216", CIFAR)
    design = StreamDesign(stages, CIFAR, 100, stem.stride, name="shallow")
    design.save(tmp_path / "stream.json")
    model = private_models.untrained_model(str(tmp_path / "stream.json"), "single", tmp_path / "compiled")
    program = load_program(model.folder)
    assert model.design == design and program.relu_count == design.relus
    assert 29 <= program.ring_bits <= 32  # those of the trained streams of 12.7K to 102.4K ReLUs: 31 and 32


@pytest.mark.slow
def test_the_verb_fits_and_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clear, "RUNS", 4)
    figure = tmp_path / "scaling.svg"
    sizes = f"{small_file(tmp_path, 'tiny', 2)},{small_file(tmp_path, 'small', 3)}"
    words = "--backend gmw --repeat 1 --json --sizes"
    ran = CliRunner().invoke(APP, [*words.split(), sizes, "--figure", str(figure)])
    assert ran.exit_code == 0, ran.output
    results = json.loads(ran.stdout)
    assert [fit["phase"] for fit in results["fits"]] == ["online", "offline", "total"]
    for fit in results["fits"]:
        assert (fit["smallest_relus"], fit["largest_relus"]) == (128, 192)
    rows = results["rows"]
    online = results["fits"][0]
    for row in rows:  # two points: the line goes through both
        assert online["intercept_s"] + online["s_per_relu"] * row["relus"] == pytest.approx(row["online_s"])
    assert "seconds" in figure.read_text() and "R²" in figure.read_text()


@pytest.mark.parametrize("sizes", ["", "25.6k", "25.6k,", "25.6k, 25.6K", "25.6k,25600", "25.6k,25.5k"])
def test_one_count_of_relus_makes_no_line(sizes: str) -> None:
    with pytest.raises(InputError, match="fewer than two different sizes") as caught:
        CliRunner().invoke(APP, ["--sizes", sizes], catch_exceptions=False)
    assert "25.6k,51.2k" in caught.value.remedy


def test_a_file_that_cannot_be_written_is_named_before_measuring(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for out in (tmp_path, tmp_path / "file" / "scaling.json"):
        with pytest.raises(InputError, match="cannot be written"):
            CliRunner().invoke(APP, ["-o", str(out)], catch_exceptions=False)
