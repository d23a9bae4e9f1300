"""design.json of every kind of network: round trip, and faults named."""

import json
from pathlib import Path

import pytest

from sphynx.errors import InputError
from sphynx.space.design import Design
from sphynx.space.files import AnyDesign, is_design, load_any_design
from sphynx.space.micro import MicroDesign
from sphynx.space.published_cells import PC_DARTS_SKIP, SPHYNX
from sphynx.space.reference import ResNet18Design, Vgg11Design, WideResNetDesign
from sphynx.space.stream import Stage, StreamDesign
from sphynx.space.tally import Shape

EVERY_KIND: list[AnyDesign] = [
    Design(SPHYNX, 5, 5, (0, 1)),
    ResNet18Design(16, Shape(3, 32, 32), 100, "small", "average", "teacher"),
    Vgg11Design(8, Shape(3, 64, 48), 10, 64),
    WideResNetDesign(16, 2, Shape(3, 32, 32), 10, "teacher"),
    StreamDesign((Stage(8, (2, 3)), Stage(4, (5,))), Shape(1, 8, 8), 10, borders="zero", name="small"),
    MicroDesign(PC_DARTS_SKIP, 1, 4, balancing="relu", share_relus=True, preprocessing_relus="reductions"),
]


@pytest.mark.parametrize("design", EVERY_KIND, ids=lambda design: type(design).__name__)
def test_round_trip(design: AnyDesign, tmp_path: Path) -> None:
    design.save(tmp_path / "design.json")
    assert load_any_design(tmp_path / "design.json") == design
    assert is_design(json.loads((tmp_path / "design.json").read_text()))
    assert design.account.total.relus > 0


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"width": "wide"}, "width"),
        ({"colour": 1}, "unknown key 'colour'"),
        ({"image": [3, 32]}, r"image: expected \[channels, height, width\]"),
        ({"stem": "odd"}, "stem"),
        ({"width": 0}, "at least 1"),
    ],
)
def test_faults_of_reference_files(change: dict[str, object], fault: str, tmp_path: Path) -> None:
    path = tmp_path / "design.json"
    path.write_text(json.dumps({**EVERY_KIND[1].to_json(), **change}))
    with pytest.raises(InputError, match=fault):
        load_any_design(path)


def test_a_sphynx_design_is_asked_for(tmp_path: Path) -> None:
    EVERY_KIND[1].save(tmp_path / "design.json")
    with pytest.raises(InputError, match="sphynx-resnet18/1"):
        Design.load(tmp_path / "design.json")
