"""Designs: the JSON round trip, validation, and the ReLU count's closed form."""

import json
from pathlib import Path

import pytest
from hypothesis import given

from sphynx.errors import InputError
from sphynx.space.account import account_of, relu_count
from sphynx.space.design import Design, default_reduce_positions
from sphynx.space.published_cells import DARTS_V2, SPHYNX
from sphynx.space.tally import Shape
from tests.space.strategies import designs


@given(designs())
def test_json_round_trip(design: Design) -> None:
    assert Design.from_json(json.loads(json.dumps(design.to_json()))) == design


@given(designs())
def test_rows_add_up_to_the_total(design: Design) -> None:
    account = account_of(design)
    for count in ("relus", "comparisons", "parameters", "macs"):
        assert sum(getattr(row, count) for row in account.rows) == getattr(account.total, count)


@pytest.mark.parametrize("reduce_at", [(0, 1), (1, 3), (3, 4), (2,), ()])
def test_relu_balancing_gives_the_closed_form(reduce_at: tuple[int, ...]) -> None:
    design = Design(SPHYNX, 7, 5, reduce_at, image=Shape(3, 64, 64))
    assert relu_count(design) == 64 * 64 * 7 * 5


def test_default_places() -> None:
    assert default_reduce_positions(8) == (2, 5)
    assert default_reduce_positions(5) == (1, 3)
    assert default_reduce_positions(1) == (0,)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"reduce_positions": (0, 5)}, "reduce position 5 is outside 0 .. 4"),
        ({"reduce_positions": (-1, 2)}, "reduce position -1 is outside"),
        ({"reduce_positions": (1, 1)}, "reduce position 1 is given twice"),
        ({"reduce_positions": (2, 1)}, "not in ascending order"),
        ({"channels": 0}, "channels must be at least 1"),
        ({"depth": 0, "reduce_positions": ()}, "depth must be at least 1"),
        ({"stem": "huge"}, "stem must be one of"),
        ({"conv_stack": "double"}, "conv_stack must be one of"),
        ({"genotype": DARTS_V2}, "is of the micro space"),
        ({"stem": "imagenet", "channels": 1}, "channels must be at least 2"),
    ],
)
def test_faults_are_named(change: dict[str, object], fault: str) -> None:
    fields = {"genotype": SPHYNX, "channels": 5, "depth": 5, "reduce_positions": (0, 1), **change}
    with pytest.raises(InputError, match=fault):
        Design(**fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"format": "sphynx-design/7"}, "this version reads"),
        ({"channels": "five"}, "channels: expected a whole number"),
        ({"image": [3, 32]}, r"image: expected \[channels, height, width\]"),
        ({"reduce_positions": "01"}, "reduce_positions: expected a list"),
        ({"reduce_positions": [7]}, "design.json: reduce position 7"),
        ({"inner_relus": 1}, "inner_relus: expected true or false"),
        ({"genotype": {}}, "genotype"),
    ],
)
def test_faults_of_files(tmp_path: Path, change: dict[str, object], fault: str) -> None:
    path = tmp_path / "design.json"
    path.write_text(json.dumps({**Design(SPHYNX, 5, 5, (0, 1)).to_json(), **change}))
    with pytest.raises(InputError, match=fault):
        Design.load(path)


def test_missing_keys_are_listed() -> None:
    with pytest.raises(InputError, match=r"(?s)genotype is missing.*channels is missing.*depth is missing"):
        Design.from_json({"format": "sphynx-design/1"})


def test_a_file_without_the_form_of_its_convolutions_is_the_papers_network() -> None:
    design = Design(SPHYNX, channels=5, depth=5, reduce_positions=(0, 1), conv_stack="paper")
    unnamed = {key: value for key, value in design.to_json().items() if key != "conv_stack"}
    assert Design.from_json(unnamed) == design
