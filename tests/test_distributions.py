"""What the two distributions are made of, without building them: code without weights, and models without code."""

import re
import tomllib
from pathlib import Path
from typing import Any

import sphynx
from sphynx.space.shipped import model_names

ROOT = Path(__file__).parents[1]
BUILT = {".pyc", ".so", ".dylib", ".pyd"}  # made on this machine, or by the wheel's own build
MOST_BYTES = 3_000_000  # of a client's wheel before it is compressed, the compiled core left out


def settings(folder: Path) -> Any:
    return tomllib.loads((folder / "pyproject.toml").read_text())


def files_of(folder: Path) -> list[Path]:
    (package,) = settings(folder)["tool"]["scikit-build"]["wheel"]["packages"]
    return [file for file in (folder / package).rglob("*") if file.is_file() and file.suffix not in BUILT]


def test_a_clients_wheel_has_no_weights() -> None:
    files = files_of(ROOT)
    assert not [file for file in files if file.suffix in {".safetensors", ".pt", ".onnx", ".npz"}]
    assert sum(file.stat().st_size for file in files) < MOST_BYTES
    assert any(file.name == "py.typed" for file in files)


def test_the_models_wheel_has_whole_models_and_no_code() -> None:
    files = files_of(ROOT / "models")
    assert [file.name for file in files if file.suffix == ".py"] == ["__init__.py"]
    folder = next(file.parent for file in files if file.name == "__init__.py")
    for name in model_names(folder):
        assert {str(file.relative_to(folder / name)) for file in files if file.is_relative_to(folder / name)} == {
            "card.json",
            "design.json",
            "model.safetensors",
            "normalisation.json",
            "program/program.json",
            "program/corrections.safetensors",
        }
    assert len(model_names(folder)) >= 2


def test_the_version_is_in_one_place() -> None:
    project = settings(ROOT)
    assert "version" not in project["project"] and project["project"]["dynamic"] == ["version"]
    where = project["tool"]["scikit-build"]["metadata"]["version"]["input"]
    # As scikit-build-core's provider looks for it.
    found = re.search(
        r'^(__version__|VERSION)(?: ?\: ?str)? *= *([\'"])v?(?P<value>.+?)\2', (ROOT / where).read_text(), re.M
    )
    assert found is not None and found["value"] == sphynx.__version__
