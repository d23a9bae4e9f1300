"""A model's name as a compiled folder: derived once, kept, shared by processes, and equal to what its network says."""

import errno
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import SafetensorError

from sphynx.errors import InputError, MissingPartError
from sphynx.network.stored import load_normalisation
from sphynx.network.trained import load_model
from sphynx.program.folder import WEIGHTS, content_hash, load_program, load_weights, save_weights
from sphynx.program.interpret import interpret
from sphynx.service.pictures import read_picture
from sphynx.space.artifact import PROGRAM
from sphynx.zoo import by_name
from sphynx.zoo.by_name import KEPT_SECONDS, compiled_folder
from sphynx.zoo.shipped import SHIPPED, load_card, model_names, model_path
from tests.zoo.models import compile_model, save_random_model

LATER_START = """
import sys
from pathlib import Path
from sphynx.zoo.by_name import compiled_folder
folder = compiled_folder("small", sys.exit, Path(sys.argv[1]))  # nothing is to be told
assert (folder / "weights.safetensors").is_file() and "torch" not in sys.modules
"""


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "small"
    save_random_model(folder)
    compile_model(folder)
    (folder / "card.json").write_text("{}")
    return folder


@pytest.fixture
def models(small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of models with one in it, and an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    shutil.copytree(small, tmp_path / "models" / "small")
    return tmp_path / "models"


def test_weights_are_derived_once_and_kept(models: Path, tmp_path: Path) -> None:
    told: list[str] = []
    folder = compiled_folder("small", told.append, models)
    assert folder.parent == tmp_path / "cache" / "sphynx" / "programs" and len(told) == 1
    program = load_program(folder)
    assert program == load_program(models / "small" / "program")
    load_weights(folder, program)
    assert (folder / WEIGHTS).stat().st_mode & 0o077 == 0
    assert list(folder.parent.iterdir()) == [folder]
    subprocess.run([sys.executable, "-c", LATER_START, str(models)], check=True)


def test_another_model_of_the_name_is_derived_anew(models: Path) -> None:
    before = compiled_folder("small", print, models)
    save_random_model(models / "small", seed=1)
    after = compiled_folder("small", print, models)
    assert before != after
    assert (before / WEIGHTS).read_bytes() != (after / WEIGHTS).read_bytes()


def test_folders_and_models_with_weights_are_taken_as_they_are(models: Path) -> None:
    program = models / "small" / "program"
    assert compiled_folder(program, pytest.fail) == program
    derived = compiled_folder("small", print, models)
    save_weights(program, load_program(program), load_weights(derived, load_program(program)))
    assert compiled_folder("small", pytest.fail, models) == program
    with pytest.raises(InputError, match="no model of that name"):
        compiled_folder("large", pytest.fail, models)


def test_several_at_once_come_to_one_folder(models: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(lambda _: compiled_folder("small", lambda _: None, models), range(4)))
    (folder,) = found
    load_weights(folder, load_program(folder))


def test_a_cache_that_cannot_be_written_costs_only_time(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    told: list[str] = []
    folder = compiled_folder("small", told.append, models)
    load_weights(folder, load_program(folder))
    assert "cannot be written" in told[-1] and folder.stat().st_mode & 0o077 == 0


def test_a_cache_that_may_not_be_entered_costs_only_time(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a user whose HOME is another's: is_file and is_dir raise there. Simulated, since root may enter all."""
    forbidden = tmp_path / "cache"

    def entering(path: Path, *words: Any, **named: Any) -> os.stat_result:
        if forbidden in path.parents:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real(path, *words, **named)

    real = Path.stat
    monkeypatch.setattr(Path, "stat", entering)
    forbidden.touch()  # so that nothing can be written there either
    told: list[str] = []
    folder = compiled_folder("small", told.append, models)
    load_weights(folder, load_program(folder))
    assert "cannot be written" in told[-1]


def make_old(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "file").touch()
    long_ago = time.time() - KEPT_SECONDS - 60
    os.utime(folder, (long_ago, long_ago))
    return folder


def test_what_nobody_asked_for_in_a_long_time_goes(models: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache" / "sphynx" / "programs"
    gone = [make_old(cache / name) for name in ("older-0123456789abcdef", ".new-ab12_xyz")]
    others = [
        make_old(cache / name) for name in ("mine", "older-0123", "Older-0123456789abcdef", "a-0123456789abcdefg")
    ]
    linked = cache / "linked-0123456789abcdef"
    linked.symlink_to(make_old(tmp_path / "elsewhere"))
    recent = cache / "recent-0123456789abcdef"
    recent.mkdir()
    folder = compiled_folder("small", print, models)
    assert not any(entry.exists() for entry in gone)
    assert set(cache.iterdir()) == {*others, linked, recent, folder} and (linked / "file").exists()


def test_what_is_in_use_stays(models: Path) -> None:
    used = compiled_folder("small", print, models)
    make_old(used)
    assert compiled_folder("small", pytest.fail, models) == used  # which makes it new
    save_random_model(models / "small", seed=1)
    assert {used, compiled_folder("small", print, models)} == set(used.parent.iterdir())


@pytest.mark.parametrize("derived_anew", [False, True])
def test_what_is_asked_for_while_it_is_moved_aside_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, derived_anew: bool
) -> None:
    """Another process made it new after the first look; perhaps it then missed the folder and derived it again."""
    entry = make_old(tmp_path / "older-0123456789abcdef")
    rename = Path.rename

    def renamed(path: Path, target: Path) -> Path:
        moved = rename(path, target)
        if path == entry:
            os.utime(target)
            if derived_anew:
                make_old(entry)
        return moved

    monkeypatch.setattr(Path, "rename", renamed)
    by_name._tidy(tmp_path)
    assert list(tmp_path.iterdir()) == [entry] and (entry / "file").exists()


@pytest.mark.parametrize("damage", ["changed", "empty program", "no program", "no weights"])
def test_what_is_damaged_in_the_cache_is_derived_anew(models: Path, damage: str) -> None:
    folder = compiled_folder("small", print, models)
    program = load_program(folder)
    whole = content_hash(load_weights(folder, program))
    if damage == "changed":
        content = (folder / WEIGHTS).read_bytes()
        (folder / WEIGHTS).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    elif damage == "empty program":
        (folder / PROGRAM).write_text("")
    else:
        (folder / (PROGRAM if damage == "no program" else WEIGHTS)).unlink()
    told: list[str] = []
    assert compiled_folder("small", told.append, models) == folder
    assert len(told) == 1 and load_program(folder) == program
    assert content_hash(load_weights(folder, program)) == whole
    assert list(folder.parent.iterdir()) == [folder]
    assert compiled_folder("small", pytest.fail, models) == folder


def test_a_full_disk_is_named(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr("sphynx.program.folder.save_file", full)
    with pytest.raises(InputError, match="No space left") as refusal:
        compiled_folder("small", print, models)
    assert "Free disk space" in refusal.value.remedy


def test_without_a_home_the_remedy_is_named(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", nobody)
    with pytest.raises(InputError, match="no home folder") as refusal:
        compiled_folder("small", print, models)
    assert "XDG_CACHE_HOME" in refusal.value.remedy


def test_a_model_without_a_program_names_the_command_that_makes_it(models: Path) -> None:
    shutil.rmtree(models / "small" / "program")
    said: list[str] = []
    with pytest.raises(InputError, match="small: the model has no program") as refusal:
        compiled_folder("small", said.append, models)
    assert f"sphynx compile small -o {models / 'small' / 'program'} --derivable" in refusal.value.remedy
    assert not said


def test_without_torch_the_remedy_for_other_networks_is_named(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sphynx.compiler.derive.can_be_walked", lambda _: False)
    monkeypatch.setitem(sys.modules, "sphynx.compiler.frontend.torch_network", None)
    with pytest.raises(MissingPartError, match="once") as refusal:
        compiled_folder("small", print, models)
    assert "pip install '.[design]'" in refusal.value.remedy and "copy" in refusal.value.remedy


# Tens of seconds of kernels of 33x33 pixels.
SLOW_TO_DERIVE = {"stream-cifar100-51k", "stream-cifar100-102k", "stream-tiny-imagenet-100k"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW_TO_DERIVE else []) for name in model_names()]
)
def test_shipped_programs_follow_their_models(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """scikit-learn's photographs get the float network's answers."""
    import sklearn.datasets

    assert not (SHIPPED / name / "program" / WEIGHTS).exists()  # they would double the package
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = compiled_folder(name, print)
    program = load_program(folder)
    assert (
        program.relu_count == load_card(name)["relus"]
        and len(program.class_names) == load_card(name)["data"]["classes"]
    )
    photographs = sorted((Path(sklearn.datasets.__file__).parent / "images").glob("*.jpg"))
    pixels = np.stack([read_picture(path, program) for path in photographs])
    integers = program.real_numbers(interpret(program, load_weights(folder, program), pixels))
    network, (mean, std) = load_model(model_path(name)), load_normalisation(model_path(name))
    means, deviations = (torch.tensor(values).view(1, -1, 1, 1) for values in (mean, std))
    with torch.no_grad():
        expected = network((torch.from_numpy(pixels) / 255 - means) / deviations).numpy()
    assert np.abs(integers - expected).max() < 0.1 * expected.std()
