"""Images that belong together stay together: in splits, in the test images of a folder, in what a run remembers."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from sphynx.data.groups import group_numbers, split_by_groups
from sphynx.data.images import ImageSet
from sphynx.data.open import open_data, open_known
from sphynx.data.packed import save_packed
from sphynx.data.streamed import open_stream
from sphynx.errors import InputError

XRAYS = (
    "normal/IM-0115-0001.png",
    "normal/NORMAL2-IM-0115-0001.png",
    "normal/IM-0115-0002.png",
    "ill/person7_virus_1.png",
    "ill/person7_bacteria_9.png",
    "ill/person70_virus_2.png",
)
RULE = r"person\d+_|(?:NORMAL2-)?IM-\d+"


def write(folder: Path, names: tuple[str, ...] = XRAYS) -> Path:
    for number, name in enumerate(names):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((8, 8), 3 * number, np.uint8)).save(path)
    return folder


def test_names_tell_groups(tmp_path: Path) -> None:
    files = [tmp_path / name for name in XRAYS]
    numbers = group_numbers(RULE, files, tmp_path).tolist()
    assert numbers[0] == numbers[2] != numbers[1]
    assert numbers[3] == numbers[4] != numbers[5]
    assert len(set(group_numbers(r"^(\w+)/", files, tmp_path).tolist())) == 2  # what is captured: the class
    assert group_numbers(RULE, files[::-1], tmp_path).tolist() == numbers[::-1]


def test_a_table_tells_groups(tmp_path: Path) -> None:
    table = tmp_path / "patients.csv"
    table.write_text(
        "".join(f"{name if number % 2 else name.split('/')[1]}, p{number // 2}\n" for number, name in enumerate(XRAYS))
    )
    numbers = group_numbers(str(table), [tmp_path / name for name in XRAYS], tmp_path).tolist()
    assert [numbers.index(number) for number in numbers] == [0, 0, 2, 2, 4, 4]


@pytest.mark.parametrize(
    ("rule", "what"),
    [("person", "no group for 3 of 6 files"), ("(", "not a valid regular expression"), ("none.csv", "cannot be read")],
)
def test_rules_that_leave_a_patient_unknown_are_refused(rule: str, what: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=what) as no:
        group_numbers(rule, [tmp_path / name for name in XRAYS], tmp_path)
    assert "`groups`" in no.value.where


@settings(deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4), st.sampled_from([0.1, 0.2, 0.5]))
def test_groups_are_held_out_whole_and_classes_keep_their_share(seed: int, classes: int, fraction: float) -> None:
    random = np.random.default_rng(seed)
    groups = random.integers(0, 150, 600)
    labels = (groups + (random.random(600) < 0.2)) % classes  # some patients have images of two classes
    rest, held_out = split_by_groups(torch.from_numpy(labels), torch.from_numpy(groups), fraction, seed)
    assert sorted([*rest.tolist(), *held_out.tolist()]) == list(range(600))
    assert not set(groups[rest]) & set(groups[held_out])
    largest = int(np.bincount(groups).max())
    wanted = fraction * np.bincount(labels, minlength=classes)
    assert np.all(np.abs(np.bincount(labels[held_out], minlength=classes) - wanted) <= 2 * largest)


def test_a_folder_is_split_by_groups_and_a_run_opens_it_so_again(tmp_path: Path) -> None:
    names = tuple(f"{kind}/person{number // 2}_{number}.png" for kind in ("ill", "well") for number in range(40))
    data = open_data(str(write(tmp_path / "xrays", names)), groups=r"(ill|well)/(person\d+)_")
    assert data.train.groups is not None and data.test.groups is not None
    assert not set(data.train.groups.tolist()) & set(data.test.groups.tolist()) and data.shared_groups == 0
    assert len(data.test) == 16 and data.identity()["groups"] == 32
    first, second = data.train.halves(0)
    assert first.groups is not None and second.groups is not None
    assert not set(first.groups.tolist()) & set(second.groups.tolist())
    again = open_known("", None, None, data.source, where="run")
    assert again.content == data.content != open_data(str(tmp_path / "xrays")).content


def test_shared_groups_are_counted(tmp_path: Path) -> None:
    write(tmp_path / "xrays" / "train")
    write(tmp_path / "xrays" / "test", XRAYS[2:4])
    assert open_data(str(tmp_path / "xrays"), groups=RULE).shared_groups == 2
    assert open_stream(tmp_path / "xrays", 8, groups=RULE).shared_groups == 2


def test_only_files_have_groups() -> None:
    with pytest.raises(InputError, match="only those of folders"):
        open_data("digits", groups="person")


def test_groups_go_with_their_images() -> None:
    images = ImageSet(
        torch.zeros(4, 1, 2, 2, dtype=torch.uint8), torch.tensor([0, 0, 1, 1]), ("a", "b"), torch.arange(4)
    )
    part = images.subset(torch.tensor([3, 0]))
    assert part.groups is not None and part.groups.tolist() == [3, 0]
    assert images.digest() != ImageSet(images.images, images.labels, images.class_names).digest()


def test_packed_parts_keep_groups_names_and_every_pixel(tmp_path: Path) -> None:
    write(tmp_path / "xrays" / "train")
    write(tmp_path / "xrays" / "test", XRAYS[2:4])
    data = open_data(str(tmp_path / "xrays"), groups=RULE)
    parts = save_packed(data, tmp_path / "packed", 150)
    assert len(parts) > 3 and {path.name for path in parts} >= {"train0.npz", "train1.npz", "test0.npz"}
    packed = open_data(str(tmp_path / "packed"))
    assert packed.content == data.content and packed.train.class_names == ("ill", "normal")
    assert packed.train.groups is not None and data.train.groups is not None
    assert torch.equal(packed.train.groups, data.train.groups)
    with pytest.raises(InputError, match="packed parts keep the groups"):
        open_data(str(tmp_path / "packed"), groups=RULE)
    with pytest.raises(InputError, match="not empty"):
        save_packed(data, tmp_path / "packed", 150)


@pytest.mark.parametrize(
    "change",
    [{"group": np.zeros(1, np.int64)}, {"group": np.zeros(6)}, {"names": np.array(["one"])}, {"names": np.zeros(2)}],
)
def test_parts_whose_groups_or_names_do_not_fit_are_refused(change: dict[str, object], tmp_path: Path) -> None:
    write(tmp_path / "xrays" / "train")
    write(tmp_path / "xrays" / "test")
    data = open_data(str(tmp_path / "xrays"), groups=RULE)
    part, *_ = save_packed(data, tmp_path / "packed", 10**6)
    with np.load(part) as content:
        changed = {**content, **change}
    np.savez(part, **changed)
    with pytest.raises(InputError, match=r"arrays do not match|parts differ"):
        open_data(str(tmp_path / "packed"))
