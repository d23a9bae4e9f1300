"""Stream designs: counts by hand, their text and file form, and what is refused."""

import json
from pathlib import Path

import pytest

from sphynx.errors import InputError
from sphynx.space.files import any_design_from_json, design_fingerprint, load_any_design
from sphynx.space.stream import Stage, StreamDesign, account_of_stream, stages_from_text
from sphynx.space.tally import Shape

CIFAR = Shape(3, 32, 32)
SEVEN = "16:64:12 8:128:56x3 4:256:256x2,216"


def seven(**changes: object) -> StreamDesign:
    stages, stem = stages_from_text(SEVEN, CIFAR)
    return StreamDesign(stages, stem_stride=stem.stride, **changes)  # type: ignore[arg-type]


def test_counts_by_hand() -> None:
    design = seven()
    assert design.relus == 12 * 16**2 + 3 * 56 * 8**2 + (256 + 256 + 216) * 4**2 == 25_472
    stem, reduces = 3 * 64 * 25, 9 * (64 * 128 + 128 * 256)
    blocks = 2 * 9 * (12 * 64 + 3 * 56 * 128 + 728 * 256)
    norms = 2 * (64 + 128 + 256 + (12 + 64) + 3 * (56 + 128) + (728 + 3 * 256))
    head = 256 * 100 + 100
    assert design.parameters == stem + reduces + blocks + norms + head
    account = account_of_stream(design)
    assert design.account.total == account.total and account.total.relus == design.relus
    assert sum(row.relus for row in account.rows) == design.relus and len(account.rows) == 1 + 7 + 2 + 1


def test_halos() -> None:
    assert seven().halos == (7, 3, 1) and seven().stem_padding == 16
    assert seven(borders="zero").halos == (0, 0, 0) and seven(borders="zero").stem_padding == 2
    assert seven(borders="zero").macs < seven().macs


def test_text_round_trip() -> None:
    assert str(seven()) == SEVEN
    stages, stem = stages_from_text("28:16:3 14:8: 7:4:1,2", Shape(1, 28, 28))
    assert stages == (Stage(16, (3,)), Stage(8, ()), Stage(4, (1, 2))) and stem == (5, 1)


@pytest.mark.parametrize(
    ("text", "size", "stem"),
    [
        ("9x9/4 32:48:4 16:96:12 8:128:32 4:192:64x2", 128, (9, 4)),
        ("7x7/3 34:16:2 17:16:4 9:32:8x2", 100, (7, 3)),
        ("25:8:1 13:8:", 100, (5, 4)),
        ("15x15/7 32:8:1", 224, (15, 7)),
    ],
)
def test_stems_of_any_stride_and_sizes_that_are_not_powers_of_two(text: str, size: int, stem: tuple[int, int]) -> None:
    image = Shape(1, size, size)
    stages, found = stages_from_text(text, image)
    design = StreamDesign(stages, image, 3, found.stride, stem_kernel=found.kernel)
    assert found == stem and str(design) == text and design.stem == stem
    assert load_any_design_of(design) == design
    first = design.account.rows[0]
    assert first.parameters == stem[0] ** 2 * stages[0].width + 2 * stages[0].width


def test_a_stem_of_the_usual_kernel_is_not_written() -> None:
    assert "stem_kernel" not in seven().to_json()
    assert design_fingerprint(seven()) == design_fingerprint(seven(stem_kernel=5)) == "3ef2be3564af1e61"


def load_any_design_of(design: StreamDesign) -> object:
    return any_design_from_json(json.loads(json.dumps(design.to_json())))


@pytest.mark.parametrize(
    "text",
    [
        "16:64",
        "16:64:12 9:128:3",
        "15:64:12",
        "",
        "16:64:12x",
        "32:4:1 8:4:1",
        f"16:4:1x{10**11}",
        "9x9/0 16:4:1",
        "9x7/2 16:4:1",
        "9x9/4 16:4:1",
        "9x9/2",
    ],
)
def test_text_that_is_not_a_network(text: str) -> None:
    with pytest.raises(InputError) as no:
        stages_from_text(text, CIFAR)
    assert "16:64:12" in no.value.remedy


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"stages": []}, "no stages"),
        ({"stages": [{"width": 3}]}, "stages: entry 0: channels is missing"),
        ({"stages": [{"width": 3, "channels": [0]}]}, "at least 1"),
        ({"stages": [{"width": 3, "channels": []}]}, "linear"),
        ({"stages": [{"width": 3, "channels": [1]}] * 9}, "beyond a single pixel"),
        ({"borders": "round"}, "zero, halo"),
        ({"stem_stride": 6}, "from 1 to stem_kernel = 5"),
        ({"stem_kernel": 8}, "odd"),
        ({"stem_kernel": 65}, "odd, from 1 to 63"),
        ({"stem_stride": True}, "whole number"),
        ({"image": [3, 32]}, "channels, height, width"),
        ({"colour": 1}, "unknown key 'colour'"),
    ],
)
def test_faults_of_a_file(change: dict[str, object], fault: str, tmp_path: Path) -> None:
    path = tmp_path / "design.json"
    path.write_text(json.dumps({**seven().to_json(), **change}))
    with pytest.raises(InputError, match=fault) as no:
        load_any_design(path)
    assert no.value.where == str(path)
