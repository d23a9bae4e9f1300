"""The zoo's training writes files that safetensors reads, in parts, and pictures that only move."""

from pathlib import Path

import torch
from benchmarks import zoo_train
from safetensors.torch import load_file
from torch import nn


def test_weights_come_back_as_the_accuracy_was_measured(tmp_path: Path) -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(16, 5))
    files = zoo_train.write(zoo_train.rounded(module), tmp_path, "network")
    assert files == ["network.safetensors"]
    state = module.state_dict()
    read = load_file(tmp_path / files[0])
    assert set(read) == {name for name in state if not name.endswith("num_batches_tracked")}
    assert all(torch.equal(tensor.float(), state[name]) for name, tensor in read.items())
    assert read["0.weight"].dtype == torch.float16 and read["1.running_var"].dtype == torch.float32


def test_what_is_too_large_for_one_file_is_split(tmp_path: Path) -> None:
    state = {name: torch.full((zoo_train.PART_BYTES // 4 + 1,), float(number)) for number, name in enumerate("abc")}
    files = zoo_train.write(state, tmp_path, "network")
    assert files == ["network-0.safetensors", "network-1.safetensors", "network-2.safetensors"]
    assert [list(load_file(tmp_path / file)) for file in files] == [["a"], ["b"], ["c"]]


def test_augmented_pictures_hold_no_other_pixels() -> None:
    torch.manual_seed(0)
    images = torch.randint(0, 256, (6, 3, zoo_train.SIZE, zoo_train.SIZE), dtype=torch.uint8)
    moved = zoo_train.augmented(images)
    assert moved.shape == images.shape and moved.dtype == torch.uint8
    middle = slice(2 * zoo_train.CROP, zoo_train.SIZE - 2 * zoo_train.CROP)
    for before, after in zip(images, moved, strict=True):
        shifts = [
            torch.roll(turned, (down, right), (1, 2))[:, middle, middle]
            for turned in (before, before.flip(2))
            for down in range(-zoo_train.CROP, zoo_train.CROP + 1)
            for right in range(-zoo_train.CROP, zoo_train.CROP + 1)
        ]
        assert any(torch.equal(after[:, middle, middle], shift) for shift in shifts)


def test_the_learning_rate_goes_up_and_down_once() -> None:
    rates = [zoo_train.one_cycle(step / 50) for step in range(51)]
    top = rates.index(max(rates))
    assert max(rates) == 1 and rates[0] == rates[-1] == 0
    assert rates[: top + 1] == sorted(rates[: top + 1]) and rates[top:] == sorted(rates[top:], reverse=True)
