"""`sphynx search cells`, `placement` and `relus` as a user calls them, on the embedded digits."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sphynx.cli.main import app
from sphynx.cli.options import parse_settings
from sphynx.errors import InputError
from sphynx.space.design import Design
from sphynx.space.genotype import Genotype
from sphynx.space.prices import Prices
from sphynx.space.published_cells import SPHYNX
from sphynx.space.tally import Shape
from tests.torch_threads import torch_threads

TINY = ["--set", "epochs=1", "--set", "depth=2", "--set", "nodes=4", "--set", "batch_size=256"]
RANDOM = ["search", "cells", "--data", "digits", "--strategy", "random", "--recipe", "smoke", *TINY]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with torch_threads(1):
        yield


@pytest.fixture
def design(tmp_path: Path) -> Path:
    path = tmp_path / "start.json"
    Design(SPHYNX, 1, 3, (0, 1), Shape(1, 8, 8), 10).save(path)
    return path


def run(*words: str) -> str:
    result = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_search_prints_the_cells_and_keeps_them(tmp_path: Path) -> None:
    out = tmp_path / "cells"
    shown = run("search", "cells", "--data", "digits", "--strategy", "gdas", "--recipe", "smoke", *TINY, "-o", str(out))
    assert "normal" in shown
    assert json.loads((out / "genotype.json").read_text())["format"] == "sphynx-genotype/1"
    with pytest.raises(InputError, match="already contains a run"):
        run("search", "cells", "--data", "digits", "--strategy", "gdas", "--recipe", "smoke", *TINY, "-o", str(out))
    again = run(
        "search",
        "cells",
        "--data",
        "digits",
        "--strategy",
        "gdas",
        "--recipe",
        "smoke",
        *TINY,
        "-o",
        str(out),
        "--resume",
        "--json",
    )
    assert json.loads(again)["chosen"] == json.loads((out / "genotype.json").read_text())


def test_found_cells_are_ranked_beside_random_ones(tmp_path: Path) -> None:
    training = tmp_path / "training.toml"
    training.write_text("epochs = 1\nbatch_size = 256\nauxiliary_weight = 0.0\n")
    shown = run(*RANDOM, "-o", str(tmp_path / "out"), "--rank", str(training), "--random-cells", "1", "--json")
    assert {entry["label"] for entry in json.loads(shown)["ranking"]} == {"random, seed 0", "random cells 0"}


def test_found_cells_are_ranked_beside_named_ones_that_cannot_win(tmp_path: Path) -> None:
    training = tmp_path / "training.toml"
    training.write_text("epochs = 1\nbatch_size = 256\nauxiliary_weight = 0.0\n")
    words = ["search", "cells", "--data", "digits", "--strategy", "gdas", "--recipe", "smoke", *TINY]
    run(*words, "-o", str(tmp_path / "first"))
    file = str(tmp_path / "first" / "genotype.json")
    ranked = run(
        *words, "--seed", "1", "-o", str(tmp_path / "out"), "--rank", str(training), "--rank-with", file, "--json"
    )
    summary = json.loads(ranked)
    assert {entry["label"] for entry in summary["ranking"]} == {"gdas, seed 1", file}
    assert summary["chosen"] == summary["results"][0]["genotype"]
    with pytest.raises(InputError, match="these cells have N=7 nodes, the search has N=4"):
        run(*words, "-o", str(tmp_path / "other"), "--rank", str(training), "--rank-with", "sphynx")
    with pytest.raises(InputError, match="these cells are only used in a ranking"):
        run(*words, "-o", str(tmp_path / "other"), "--rank-with", file)


def test_many_cells_are_ranked_in_rounds(tmp_path: Path) -> None:
    training = tmp_path / "training.toml"
    training.write_text("epochs = 4\nbatch_size = 256\nauxiliary_weight = 0.0\n")
    out = tmp_path / "out"
    words = [*RANDOM, "-o", str(out), "--rank", str(training), "--random-cells", "6"]
    shown = run(*words)
    assert "after 2 epochs" in shown and "after 4 epochs" in shown
    ranking = json.loads((out / "summary.json").read_text())["ranking"]
    lengths = {entry["label"]: [one["epochs"] for one in entry["trainings"]] for entry in ranking}
    assert lengths.pop("random, seed 0") == [4]
    assert list(lengths.values()) == [[2, 4]] * 2 + [[2]] * 4
    assert Genotype.load(out / "genotype.json") == Genotype.from_json(ranking[0]["genotype"])
    for epochs, runs in ((2, 6), (4, 3)):
        assert len(list((out / "rank" / f"{epochs}-epochs").glob("*/result.json"))) == runs


def test_the_supernet_is_built_as_it_is_told(tmp_path: Path) -> None:
    words = ["search", "cells", "--data", "digits", "--strategy", "gdas", "--recipe", "smoke", *TINY]
    run(*words, "--set", "reduce_at=[1]", "--set", "supernet=released", "-o", str(tmp_path / "cells"))
    recipe = json.loads((tmp_path / "cells" / "config.json").read_text())["recipe"]
    assert recipe["reduce_at"] == [1] and recipe["supernet"] == "released"
    with pytest.raises(InputError, match=r"reduce_at = \[1, 0\]: ascending positions"):
        run(*words, "--set", "reduce_at=[1,0]", "-o", str(tmp_path / "other"))
    assert not (tmp_path / "other").exists()


def test_place_chooses_a_placement(tmp_path: Path, design: Path) -> None:
    out = tmp_path / "place"
    shown = run(
        "search",
        "placement",
        str(design),
        "--data",
        "digits",
        "--recipe",
        "smoke",
        "--set",
        "epochs=1",
        "--set",
        "batch_size=256",
        "--set",
        "estimator=losses",
        "-o",
        str(out),
        "--json",
    )
    found = json.loads(shown)
    assert len(found["placements"]) == 3
    assert json.loads((out / "config.json").read_text())["recipe"]["estimator"] == "losses"
    assert list(Design.load(out / "design.json").reduce_positions) == found["best"]
    assert (out / "figures" / "placement.svg").exists()


def test_place_keeps_the_designs_relus(tmp_path: Path) -> None:
    """8, 4, 2, 1, 1 pixels: the fourth reduce cell, and every cell after it, has four times the ReLUs."""
    start, out = tmp_path / "four.json", tmp_path / "four"
    Design(SPHYNX, 1, 5, (0, 1, 2, 4), image=Shape(1, 8, 8), classes=10).save(start)
    words = ["--data", "digits", "--recipe", "smoke", "--set", "epochs=1", "--set", "batch_size=256"]
    words += ["--candidates", "all"]
    ran = CliRunner().invoke(
        app, ["search", "placement", str(start), *words, "--reduce-cells", "4", "-o", str(out), "--json", "-v"]
    )
    assert ran.exit_code == 0, ran.output
    places = json.loads(ran.stdout)["placements"]
    assert len(places) == 4 and {place[-1] for place in places} == {4}
    assert "left out 1 of 5 placements: more ReLUs than the design (512)" in ran.stderr

    Design(SPHYNX, 1, 5, (0, 1), image=Shape(1, 8, 8), classes=10).save(start)
    with pytest.raises(InputError, match="at least 512 ReLUs, the given design has 320") as refused:
        run("search", "placement", str(start), *words, "--reduce-cells", "4", "-o", str(tmp_path / "none"))
    assert "fewer reduce cells" in refused.value.remedy and not (tmp_path / "none").exists()


def test_settings_are_read_as_toml() -> None:
    assert parse_settings(["epochs=3", "hessian=true", "selection=perturbation", "betas=[0.5, 0.9]"]) == {
        "epochs": 3,
        "hessian": True,
        "selection": "perturbation",
        "betas": [0.5, 0.9],
    }
    with pytest.raises(InputError, match="not a valid setting"):
        parse_settings(["epochs"])


def test_bad_input_is_refused_before_any_work(tmp_path: Path) -> None:
    common = ["search", "cells", "--data", "digits", "--recipe", "smoke", "-o", str(tmp_path)]
    with pytest.raises(InputError, match="unknown key"):
        run(*common, "--set", "speed=9")
    with pytest.raises(InputError, match="conv5: 'much' is not a number"):
        run(*common, "--cost", "conv5=much")
    with pytest.raises(InputError, match="not a valid setting") as refused_cost:
        run(*common, "--cost", "conv5")
    assert refused_cost.value.where == "--cost" and "NAME=VALUE" in refused_cost.value.remedy
    with pytest.raises(InputError, match="without a weight"):
        run(*common, "--cost", "conv5=2")
    with pytest.raises(InputError, match="batch norm needs at least 2"):  # 8x8 images end in single pixels
        run(*common, "--set", "batch_size=1", "--set", "depth=4", "--set", "reduce_at=[0,1,2]")
    with pytest.raises(InputError, match="max_skips"):
        run(*common, "--set", "max_skips=-1")
    for words in (["--strategy", "magic"], ["--seed", "-1"]):
        refused = CliRunner().invoke(app, [*common, *words])
        assert refused.exit_code == 2 and words[0] in refused.output


def test_allocate_a_stream_by_relus_and_by_seconds(tmp_path: Path) -> None:
    start, table = tmp_path / "stream.json", tmp_path / "prices.json"
    run(
        "show",
        "stream",
        "--stages",
        "4:6:4 2:8:8",
        "--image-size",
        "8",
        "--image-channels",
        "1",
        "--classes",
        "10",
        "-o",
        str(start),
    )
    few = ("--recipe", "smoke", "--set", "epochs=1", "--set", "batch_size=256", "--parts", "3", "--randoms", "1")
    found = json.loads(
        run("search", "relus", str(start), "--data", "digits", *few, "-o", str(tmp_path / "relus"), "--json")
    )
    assert found["unit"] == "ReLUs" and found["budget"] == 96
    assert max(one["relus"] for one in found["allocations"]) <= 96
    Prices("4:6:4 2:8:8", "lan", "gc", "a machine", 0.01, (2e-4, 1e-4)).save(table)
    shown = run(
        "search",
        "relus",
        str(start),
        "--data",
        "digits",
        "--method",
        "gates",
        *few,
        "--latency-budget",
        "11ms",
        "--prices",
        str(table),
        "-o",
        str(tmp_path / "seconds"),
    )
    assert "gates" in shown and (tmp_path / "seconds" / "design.json").is_file()
    with pytest.raises(InputError, match="the budget must be in ReLUs, or in seconds"):
        run("search", "relus", str(start), "--data", "digits", "--latency-budget", "11ms", "-o", str(tmp_path / "none"))
    with pytest.raises(InputError, match="only be allocated in a stream"):
        cells = tmp_path / "cells.json"
        Design(SPHYNX, 1, 3, (0, 1), Shape(1, 8, 8), 10).save(cells)
        run("search", "relus", str(cells), "--data", "digits", "-o", str(tmp_path / "none"))
